-- Batches, newest first, from those made before a place. Ids are time-ordered to the millisecond, so some more are read
-- by id and then sorted.
-- Locks: none. Index: primary key, backwards.
SELECT id, key, task, queue, state, outcome, total, round, max_failed, created_at, sealed_at, closed_at,
  paused_at, paused_reason
FROM (
  SELECT * FROM {schema}.batches WHERE id <= %(top)s::uuid
    AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
  ORDER BY id DESC LIMIT %(limit)s::int + 100) AS b
ORDER BY created_at DESC, id DESC LIMIT %(limit)s::int
