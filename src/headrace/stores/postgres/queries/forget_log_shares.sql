-- Remove how far a group is, in which nobody is; run after lock_group and drop_log_members.
-- Locks: the rows, by topic and partition. Index: primary key.
WITH known AS MATERIALIZED (
  SELECT s.topic_id, s.partition FROM {schema}.log_shares AS s
  WHERE s.name = %(name)s
  ORDER BY s.topic_id, s.partition
  FOR UPDATE OF s
)
DELETE FROM {schema}.log_shares AS s USING known AS k
WHERE s.name = %(name)s AND s.topic_id = k.topic_id AND s.partition = k.partition
