-- The (queue, state) pairs that have history other than successes: one index probe per pair instead of a scan.
-- Locks: none. Index: finished_jobs_failed.
WITH RECURSIVE pair AS (
  (SELECT queue, state FROM {schema}.finished_jobs WHERE state IS DISTINCT FROM 'succeeded' ORDER BY queue, state LIMIT 1)
  UNION ALL
  SELECT n.queue, n.state FROM pair AS p CROSS JOIN LATERAL (
    SELECT f.queue, f.state FROM {schema}.finished_jobs AS f
    WHERE f.state IS DISTINCT FROM 'succeeded' AND (f.queue, f.state) > (p.queue, p.state)
    ORDER BY f.queue, f.state LIMIT 1) AS n
)
SELECT queue, state FROM pair
