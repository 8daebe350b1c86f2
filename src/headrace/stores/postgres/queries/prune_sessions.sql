-- Remove sessions that ended long ago. What should still run under one is found by the next thorough rescue: it takes
-- back jobs of missing sessions too.
-- Locks: the removed rows. Index: none, one row per worker start.
DELETE FROM {schema}.sessions WHERE id = ANY(ARRAY(
  SELECT s.id FROM {schema}.sessions AS s
  WHERE s.expires_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  LIMIT %(limit)s::int))
RETURNING id
