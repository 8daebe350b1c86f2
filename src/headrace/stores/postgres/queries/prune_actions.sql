-- Remove actions of the audit that were done longer ago, the oldest first.
-- Locks: the removed rows, skipping locked ones. Index: actions_newest, primary key.
DELETE FROM {schema}.actions WHERE id = ANY(ARRAY(
  SELECT a.id FROM {schema}.actions AS a
  WHERE a.done_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  ORDER BY a.done_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))
RETURNING id
