-- List flushes that wait although they are the first of their users, and were not looked at for a while; and note that
-- they are looked at now.
-- Locks: the flushes, skipping locked ones. Index: flushes_looked_at, flushes_unfinished.
WITH old AS MATERIALIZED (
  SELECT f.id FROM {schema}.flushes AS f
  WHERE f.state = 'waiting' AND f.looked_at <= now() - %(after)s::interval AND NOT EXISTS (
    SELECT FROM {schema}.flushes AS o
    WHERE o.user_id = f.user_id AND o.state IN ('waiting', 'processing') AND o.number < f.number
  )
  ORDER BY f.looked_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.flushes AS f SET looked_at = now() FROM old WHERE f.id = old.id
RETURNING f.id, f.user_id, f.blob_ids, f.tokens, f.number, f.state, f.reason, f.created_at, f.round, f.error
