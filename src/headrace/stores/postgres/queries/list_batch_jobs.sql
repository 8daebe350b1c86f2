-- Jobs of a batch that match, newest first, from those made before a place. Ids are time-ordered to the millisecond, so some more are read by id and
-- then sorted. `brief` leaves out what may be large: stored beside the rows, it is not read at all.
-- Locks: none. Index: jobs_batch, finished_jobs_items, or both primary keys backwards.
(SELECT id, task, queue, state, priority, attempt, failures, crashes, max_attempts, created_at, run_at, started_at,
  NULL::timestamptz AS finished_at, session, CASE WHEN %(brief)s::bool THEN NULL ELSE args END AS args, NULL::json AS result,
  NULL::json AS error, batch_id, ordinal, retry_of, cancel_requested, NULL::json AS usage, run_id, node
FROM {schema}.jobs
WHERE (%(state)s::text IS NULL OR state = %(state)s::text) AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
  AND (%(task)s::text IS NULL OR task = %(task)s::text) AND batch_id = %(batch_id)s::uuid AND id <= %(top)s::uuid
  AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
ORDER BY id DESC LIMIT %(limit)s::int + 100)
UNION ALL
(SELECT id, task, queue, state, priority, attempt, failures, crashes, max_attempts, created_at, run_at, started_at,
  finished_at, session, CASE WHEN %(brief)s::bool THEN NULL ELSE args END AS args,
  CASE WHEN %(brief)s::bool THEN NULL ELSE result END AS result, error, batch_id, ordinal, retry_of, cancel_requested,
  CASE WHEN %(brief)s::bool THEN NULL ELSE usage END AS usage, run_id, node
FROM {schema}.finished_jobs
WHERE (%(state)s::text IS NULL OR state = %(state)s::text) AND (%(queue)s::text IS NULL OR queue = %(queue)s::text)
  AND (%(task)s::text IS NULL OR task = %(task)s::text) AND batch_id = %(batch_id)s::uuid AND id <= %(top)s::uuid
  AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
ORDER BY id DESC LIMIT %(limit)s::int + 100)
ORDER BY created_at DESC, id DESC LIMIT %(limit)s::int
