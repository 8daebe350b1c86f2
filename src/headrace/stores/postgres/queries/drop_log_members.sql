-- Remove the members of a group whose lease is over; what they read is free. Run after lock_group.
-- Locks: their rows and shares, these by topic and partition. Index: primary keys.
WITH gone AS (
  DELETE FROM {schema}.log_members AS m
  WHERE m.name = %(name)s AND m.expires_at <= coalesce(%(now)s::timestamptz, now())
  RETURNING m.member
), held AS MATERIALIZED (
  SELECT s.topic_id, s.partition FROM {schema}.log_shares AS s
  WHERE s.name = %(name)s AND s.member IN (SELECT g.member FROM gone AS g)
  ORDER BY s.topic_id, s.partition
  FOR UPDATE OF s
)
UPDATE {schema}.log_shares AS s SET member = NULL FROM held AS h
WHERE s.name = %(name)s AND s.topic_id = h.topic_id AND s.partition = h.partition
