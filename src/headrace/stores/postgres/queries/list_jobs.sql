-- Jobs that match, newest first, from those made before a place, at a bounded cost: what matches among the newest of each
-- table by id, among the oldest that are not final (those that run), and what indexes know of a queue (ready, failed,
-- cancelled). Others that match are not seen: an old success of a rare queue, say. Ids are time-ordered to the
-- millisecond, hence some more than asked; `top` is the last id that can be as old as the place. `brief` leaves values out
-- that are stored beside the rows when they are large, so that they are not read at all.
-- Locks: none. Index: both primary keys, jobs_claim, jobs_waiting, finished_jobs_failed.
WITH RECURSIVE asked AS MATERIALIZED (
  SELECT %(state)s::text AS state, %(queue)s::text AS queue, %(task)s::text AS task, %(limit)s::int + 100 AS few,
    coalesce(%(before_at)s::timestamptz, 'infinity') AS before_at, coalesce(%(before_id)s::uuid, %(top)s::uuid) AS before_id,
    CASE WHEN coalesce(%(state)s::text, %(queue)s::text, %(task)s::text) IS NULL THEN 0 ELSE %(walk)s::int END
      + %(limit)s::int + 100 AS far
), pair AS (
  (SELECT queue, state FROM {schema}.finished_jobs WHERE state IS DISTINCT FROM 'succeeded' ORDER BY queue, state LIMIT 1)
  UNION ALL
  SELECT n.queue, n.state FROM pair AS p CROSS JOIN LATERAL (
    SELECT f.queue, f.state FROM {schema}.finished_jobs AS f
    WHERE f.state IS DISTINCT FROM 'succeeded' AND (f.queue, f.state) > (p.queue, p.state)
    ORDER BY f.queue, f.state LIMIT 1) AS n
), near AS (
  (SELECT id, state, queue, task, created_at FROM {schema}.jobs
  WHERE coalesce(%(state)s::text, 'ready') NOT IN ('succeeded', 'failed', 'cancelled')
    AND id <= %(top)s::uuid
    AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
  ORDER BY id DESC LIMIT (SELECT far FROM asked))
  UNION ALL
  (SELECT id, state, queue, task, created_at FROM {schema}.jobs
  WHERE coalesce(%(state)s::text, 'ready') NOT IN ('succeeded', 'failed', 'cancelled')
    AND id <= %(top)s::uuid
    AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
  ORDER BY id LIMIT (SELECT far FROM asked))
  UNION ALL
  (SELECT id, state, queue, task, created_at FROM {schema}.finished_jobs
  WHERE coalesce(%(state)s::text, 'failed') IN ('succeeded', 'failed', 'cancelled')
    AND id <= %(top)s::uuid
    AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
  ORDER BY id DESC LIMIT (SELECT far FROM asked))
  UNION ALL
  (SELECT id, state, queue, task, created_at FROM {schema}.jobs
  WHERE state = 'ready' AND lane IS NULL AND queue = %(queue)s::text AND coalesce(%(state)s::text, 'ready') = 'ready'
    AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
  ORDER BY sort_at DESC LIMIT (SELECT few FROM asked))
  UNION ALL
  (SELECT id, state, queue, task, created_at FROM {schema}.jobs
  WHERE state = 'ready' AND lane IS NOT NULL AND queue = %(queue)s::text AND coalesce(%(state)s::text, 'ready') = 'ready'
    AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
  ORDER BY lane DESC, sort_at DESC LIMIT (SELECT few FROM asked))
  UNION ALL
  SELECT b.id, p.state, p.queue, b.task, b.created_at FROM asked AS a CROSS JOIN pair AS p CROSS JOIN LATERAL (
    SELECT f.id, f.task, f.created_at FROM {schema}.finished_jobs AS f
    WHERE f.state IS DISTINCT FROM 'succeeded' AND f.queue = p.queue AND f.state = p.state
      AND (f.created_at, f.id) < (a.before_at, a.before_id)
    ORDER BY f.finished_at DESC LIMIT (SELECT few FROM asked)) AS b
  WHERE p.queue = coalesce(a.queue, p.queue) AND p.state = coalesce(a.state, p.state)
    AND coalesce(a.state, a.queue, a.task) IS NOT NULL
), chosen AS MATERIALIZED (
  SELECT DISTINCT n.id FROM near AS n CROSS JOIN asked AS a
  WHERE n.queue = coalesce(a.queue, n.queue) AND n.state = coalesce(a.state, n.state)
    AND n.task = coalesce(a.task, n.task)
  ORDER BY n.id DESC LIMIT (SELECT few FROM asked)
)
SELECT id, task, queue, state, priority, attempt, failures, crashes, max_attempts, created_at, run_at, started_at,
  NULL::timestamptz AS finished_at, session, CASE WHEN %(brief)s::bool THEN NULL ELSE args END AS args, NULL::json AS result,
  NULL::json AS error, batch_id, ordinal, retry_of, cancel_requested, NULL::json AS usage, run_id, node
FROM {schema}.jobs WHERE id = ANY(ARRAY(SELECT id FROM chosen))
UNION ALL
SELECT id, task, queue, state, priority, attempt, failures, crashes, max_attempts, created_at, run_at, started_at,
  finished_at, session, CASE WHEN %(brief)s::bool THEN NULL ELSE args END AS args,
  CASE WHEN %(brief)s::bool THEN NULL ELSE result END AS result, error, batch_id, ordinal, retry_of, cancel_requested,
  CASE WHEN %(brief)s::bool THEN NULL ELSE usage END AS usage, run_id, node
FROM {schema}.finished_jobs WHERE id = ANY(ARRAY(SELECT id FROM chosen))
ORDER BY created_at DESC, id DESC LIMIT %(limit)s::int
