-- Remove paid answers that are older than their retention.
-- Locks: the removed rows. Index: answers_age, primary key.
DELETE FROM {schema}.answers WHERE key = ANY(ARRAY(
  SELECT key FROM {schema}.answers
  WHERE created_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  ORDER BY created_at LIMIT %(limit)s::int))
RETURNING key
