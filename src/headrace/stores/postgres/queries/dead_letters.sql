-- A page of failed jobs, newest first, at a bounded cost: of each queue the newest `limit` before a place and not older
-- than `within`, of these the newest; `dead` are those of the task asked for that were not retried. What is no dead
-- letter comes too, without its error: the next page begins behind the last that was looked at. Of errors what stands
-- before the trace, as in batch_dead_letters.
-- Locks: none. Index: finished_jobs_failed, primary key, the retry indexes.
WITH RECURSIVE one_queue AS (
  (SELECT queue FROM {schema}.finished_jobs
  WHERE state IS DISTINCT FROM 'succeeded' AND queue >= coalesce(%(queue)s::text, '') ORDER BY queue, state LIMIT 1)
  UNION ALL
  SELECT n.queue FROM one_queue AS q CROSS JOIN LATERAL (
    SELECT f.queue FROM {schema}.finished_jobs AS f
    WHERE f.state IS DISTINCT FROM 'succeeded' AND f.queue > q.queue AND %(queue)s::text IS NULL
    ORDER BY f.queue, f.state LIMIT 1) AS n
), page AS MATERIALIZED (
  SELECT b.id, b.finished_at FROM one_queue AS q CROSS JOIN LATERAL (
    SELECT f.id, f.finished_at FROM {schema}.finished_jobs AS f
    WHERE f.state IS DISTINCT FROM 'succeeded' AND f.queue = q.queue AND f.state = 'failed'
      AND f.finished_at >= coalesce(coalesce(%(now)s::timestamptz, now()) - %(within)s::interval, '-infinity')
      AND (f.finished_at, f.id) < (coalesce(%(before_at)s::timestamptz, 'infinity'),
        coalesce(%(before_id)s::uuid, 'ffffffff-ffff-ffff-ffff-ffffffffffff'))
    ORDER BY f.finished_at DESC, f.id DESC LIMIT %(limit)s::int) AS b
  WHERE q.queue = coalesce(%(queue)s::text, q.queue)
  ORDER BY b.finished_at DESC, b.id DESC LIMIT %(limit)s::int
)
SELECT p.id, p.finished_at, f.task, f.queue, f.batch_id, f.run_id, f.node, l.dead,
  CASE WHEN l.dead THEN coalesce(left(f.error::text, nullif(position(',"trace":' IN f.error::text), 0) - 1) || '}',
    f.error::text) END AS error
FROM page AS p JOIN {schema}.finished_jobs AS f ON f.id = p.id CROSS JOIN LATERAL (
  SELECT f.task = coalesce(%(task)s::text, f.task)
    AND NOT EXISTS (SELECT FROM {schema}.jobs AS r WHERE r.retry_of = f.id)
    AND NOT EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id) AS dead) AS l
ORDER BY p.finished_at DESC, p.id DESC
