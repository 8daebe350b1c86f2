-- Delete flushes that were done long ago, oldest first: summary and result go with them. Their rows of the buffer stay,
-- so that the same blob inserted again is known.
-- Locks: the flushes, skipping locked ones. Index: flushes_ended, primary key.
WITH old AS MATERIALIZED (
  SELECT id FROM {schema}.flushes WHERE state = 'done' AND ended_at <= now() - %(older_than)s::interval
  ORDER BY ended_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.flushes WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING id
