-- What the indexes of a big history say of its queues within a bounded number of entries: failed and cancelled jobs by
-- queue, and how many jobs came and went lately. When the newest entries do not reach back to `window`, the counts
-- are those of the time they do reach back, for which `span` and `came_span` stand.
-- Locks: none. Index: finished_jobs_failed by one probe per pair, finished_jobs_succeeded and the primary key backwards.
WITH RECURSIVE t AS MATERIALIZED (
  SELECT n.now, n.now - %(window)s::interval AS since FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS n
), pair AS (
  (SELECT queue, state FROM {schema}.finished_jobs WHERE state IS DISTINCT FROM 'succeeded' ORDER BY queue, state LIMIT 1)
  UNION ALL
  SELECT n.queue, n.state FROM pair AS p CROSS JOIN LATERAL (
    SELECT f.queue, f.state FROM {schema}.finished_jobs AS f
    WHERE f.state IS DISTINCT FROM 'succeeded' AND (f.queue, f.state) > (p.queue, p.state)
    ORDER BY f.queue, f.state LIMIT 1) AS n
), bad AS (
  SELECT p.queue, sum(c.all) FILTER (WHERE p.state = 'failed') AS failed,
    sum(c.all) FILTER (WHERE p.state = 'cancelled') AS cancelled, sum(c.went) AS went
  FROM pair AS p CROSS JOIN t CROSS JOIN LATERAL (
    SELECT count(*) AS all, count(*) FILTER (WHERE e.finished_at > t.since) AS went FROM (
      SELECT f.finished_at FROM {schema}.finished_jobs AS f
      WHERE f.state IS DISTINCT FROM 'succeeded' AND f.queue = p.queue AND f.state = p.state
      ORDER BY f.finished_at DESC LIMIT %(bound)s::int) AS e) AS c
  GROUP BY p.queue
), ended AS MATERIALIZED (
  SELECT f.queue, f.finished_at FROM {schema}.finished_jobs AS f
  WHERE f.state IS NOT DISTINCT FROM 'succeeded' AND f.finished_at > (SELECT since FROM t)
  ORDER BY f.finished_at DESC LIMIT %(bound)s::int
), newest AS MATERIALIZED (
  SELECT f.queue, f.created_at FROM {schema}.finished_jobs AS f ORDER BY f.id DESC LIMIT %(bound)s::int
), good AS (
  SELECT queue, count(*) AS went FROM ended GROUP BY queue
), born AS (
  SELECT n.queue, count(*) AS came FROM newest AS n CROSS JOIN t WHERE n.created_at > t.since GROUP BY n.queue
), names AS (
  SELECT queue FROM bad UNION SELECT queue FROM good UNION SELECT queue FROM born
)
SELECT n.queue, coalesce(b.failed, 0)::bigint AS failed, coalesce(b.cancelled, 0)::bigint AS cancelled,
  coalesce(g.went, 0)::bigint AS succeeded_lately, coalesce(b.went, 0)::bigint AS others_lately,
  coalesce(c.came, 0)::bigint AS came,
  CASE WHEN (SELECT count(*) FROM ended) < %(bound)s::int THEN %(window)s::interval
    ELSE least(%(window)s::interval, t.now - (SELECT min(finished_at) FROM ended)) END AS span,
  CASE WHEN (SELECT count(*) FROM newest) < %(bound)s::int THEN %(window)s::interval
    ELSE least(%(window)s::interval, t.now - (SELECT min(created_at) FROM newest)) END AS came_span
FROM names AS n CROSS JOIN t LEFT JOIN bad AS b ON b.queue = n.queue LEFT JOIN good AS g ON g.queue = n.queue
  LEFT JOIN born AS c ON c.queue = n.queue
