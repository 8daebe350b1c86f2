-- Let flushes that failed some time ago wait again, each so many rounds at most, or however many; of one user, or of
-- all. Their rows are idle and stay bound.
-- Locks: the flushes, skipping locked ones, then their rows. Index: flushes_ended, primary key, buffer_zone_user.
WITH old AS MATERIALIZED (
  SELECT id, user_id FROM {schema}.flushes
  WHERE state = 'failed' AND ended_at <= now() - %(after)s::interval
    AND round < coalesce(%(most_rounds)s::int, round + 1) AND user_id = coalesce(%(user_id)s::text, user_id)
  ORDER BY ended_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
), rows AS (
  UPDATE {schema}.buffer_zone AS z SET status = 'idle', updated_at = now()
  FROM old WHERE z.user_id = old.user_id AND z.flush_id = old.id AND z.status <> 'done'
)
UPDATE {schema}.flushes AS f SET state = 'waiting', ended_at = NULL, round = f.round + 1
FROM old WHERE f.id = old.id
RETURNING f.id, f.user_id, f.blob_ids, f.tokens, f.number, f.state, f.reason, f.created_at, f.round, f.error
