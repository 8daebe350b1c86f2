-- Let flushes whose lease has ended wait again, oldest first. Their rows are idle, and stay bound to them: the same
-- flush is taken up again.
-- Locks: the flushes, skipping locked ones, then their rows. Index: flushes_lease, primary key, buffer_zone_user.
WITH late AS MATERIALIZED (
  SELECT id, user_id FROM {schema}.flushes WHERE state = 'processing' AND lease_until <= now()
  ORDER BY lease_until LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
), released AS (
  UPDATE {schema}.flushes AS f SET state = 'waiting', lease_until = NULL FROM late WHERE f.id = late.id
), rows AS (
  UPDATE {schema}.buffer_zone AS z SET status = 'idle', updated_at = now()
  FROM late WHERE z.user_id = late.user_id AND z.flush_id = late.id AND z.status <> 'done'
)
SELECT id FROM late
