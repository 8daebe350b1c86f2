-- Remove model calls that ended and were opened longer ago than answers are kept.
-- Locks: the removed rows. Index: calls_opened, primary key.
DELETE FROM {schema}.calls WHERE id = ANY(ARRAY(
  SELECT id FROM {schema}.calls
  WHERE opened_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
    AND state IN ('settled', 'orphaned')
  ORDER BY opened_at, id LIMIT %(limit)s::int))
RETURNING id
