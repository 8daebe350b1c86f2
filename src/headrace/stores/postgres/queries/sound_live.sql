-- What the indexes of a big hot table say of its queues within a bounded number of entries each: ready jobs without a
-- gate and how long the first of them have been so, scheduled jobs (of all queues together), and jobs that ran at the
-- last heartbeats, shared out by slots. A count that reached the bound is a lower one.
-- Locks: none. Index: jobs_claim by one probe per queue, jobs_due; the pages of the entries.
WITH RECURSIVE waiting AS (
  (SELECT queue FROM {schema}.jobs WHERE state = 'ready' AND lane IS NULL ORDER BY queue LIMIT 1)
  UNION ALL
  SELECT n.queue FROM waiting AS w CROSS JOIN LATERAL (
    SELECT j.queue FROM {schema}.jobs AS j WHERE j.state = 'ready' AND j.lane IS NULL AND j.queue > w.queue
    ORDER BY j.queue LIMIT 1) AS n
), ready AS (
  SELECT w.queue, count(*) AS ready, min(j.ready_since) AS ready_since
  FROM waiting AS w CROSS JOIN LATERAL (
    SELECT r.sort_at + (%(head_starts)s::interval[])[r.priority + 1] AS ready_since FROM {schema}.jobs AS r
    WHERE r.queue = w.queue AND r.state = 'ready' AND r.lane IS NULL
    ORDER BY r.sort_at, r.id LIMIT %(bound)s::int) AS j
  GROUP BY w.queue
), due AS (
  SELECT d.queue, count(*) AS scheduled, sum(count(*)) OVER () AS all_queues
  FROM (SELECT queue FROM {schema}.jobs WHERE state = 'scheduled' ORDER BY run_at LIMIT %(bound)s::int) AS d
  GROUP BY d.queue
), busy AS (
  SELECT q.key AS queue, sum(coalesce((s.stats ->> 'headrace.jobs.running')::bigint, 0) * q.value::text::bigint
      / greatest((SELECT sum(o.value::text::bigint) FROM json_each(s.queues) AS o), 1))::bigint AS running
  FROM {schema}.sessions AS s CROSS JOIN json_each(s.queues) AS q
  WHERE s.expires_at > coalesce(%(now)s::timestamptz, now()) GROUP BY q.key
)
SELECT coalesce(r.queue, d.queue, b.queue) AS queue, coalesce(r.ready, 0) AS ready,
  coalesce(%(now)s::timestamptz, now()) - r.ready_since AS ready_age,
  coalesce(d.scheduled, 0) AS scheduled, coalesce(b.running, 0) AS running,
  (SELECT coalesce(max(all_queues), 0) FROM due)::bigint AS all_scheduled
FROM ready AS r FULL JOIN due AS d ON d.queue = r.queue FULL JOIN busy AS b ON b.queue = coalesce(r.queue, d.queue)
