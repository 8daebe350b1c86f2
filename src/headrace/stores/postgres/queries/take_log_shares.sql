-- Let a member of a group read free partitions; run after lock_group. What is returned is read behind the locks of the rows.
-- Locks: the rows, by topic and partition. Index: primary key; the first message by that of the messages.
WITH free AS MATERIALIZED (
  SELECT s.topic_id, s.partition FROM {schema}.log_shares AS s
    JOIN unnest(%(topic_ids)s::int[], %(partitions)s::int[]) AS f (topic_id, partition)
      ON f.topic_id = s.topic_id AND f.partition = s.partition
  WHERE s.name = %(name)s AND s.member IS NULL
  ORDER BY s.topic_id, s.partition
  FOR UPDATE OF s
)
UPDATE {schema}.log_shares AS s SET member = %(member)s, generation = s.generation + 1
FROM free AS f
WHERE s.name = %(name)s AND s.topic_id = f.topic_id AND s.partition = f.partition
RETURNING s.topic_id, s.partition, s.generation, greatest(s.position,
  (SELECT min(m.position) FROM {schema}.log_messages AS m WHERE m.topic_id = s.topic_id AND m.partition = s.partition))
  AS position
