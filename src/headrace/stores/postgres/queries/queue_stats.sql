-- Every queue that has jobs, live workers or a setting, with its counts, its oldest ready job and last minute's rates.
-- Locks: none. Index: finished_jobs_age without its table; scans the hot table.
WITH t AS MATERIALIZED (
  SELECT coalesce(%(now)s::timestamptz, now()) AS now, coalesce(%(now)s::timestamptz, now()) - %(window)s::interval AS since
), live AS MATERIALIZED (
  SELECT queue, count(*) FILTER (WHERE state = 'scheduled') AS scheduled, count(*) FILTER (WHERE state = 'ready') AS ready,
    count(*) FILTER (WHERE state = 'running') AS running, count(*) FILTER (WHERE state = 'parked') AS parked,
    min(sort_at + (%(head_starts)s::interval[])[priority + 1]) FILTER (WHERE state = 'ready') AS ready_since,
    count(*) FILTER (WHERE created_at > t.since) AS came
  FROM {schema}.jobs CROSS JOIN t GROUP BY queue
), past AS MATERIALIZED (
  SELECT queue, count(*) FILTER (WHERE state = 'succeeded') AS succeeded, count(*) FILTER (WHERE state = 'failed') AS failed,
    count(*) FILTER (WHERE state = 'cancelled') AS cancelled
  FROM {schema}.finished_jobs GROUP BY queue
), recent AS MATERIALIZED (
  SELECT p.queue, count(*) AS went, count(*) FILTER (WHERE f.created_at > t.since) AS came
  FROM t CROSS JOIN past AS p CROSS JOIN (VALUES ('succeeded'), ('failed'), ('cancelled')) AS s (state)
    JOIN {schema}.finished_jobs AS f ON f.queue = p.queue AND f.state = s.state AND f.finished_at > t.since
  GROUP BY p.queue
), workers AS MATERIALIZED (
  SELECT q.name AS queue, count(*) AS live FROM t CROSS JOIN {schema}.sessions AS s
    CROSS JOIN json_object_keys(s.queues) AS q (name)
  WHERE s.expires_at > t.now GROUP BY q.name
), names AS (
  SELECT queue FROM live UNION SELECT queue FROM past UNION SELECT queue FROM workers
  UNION SELECT name FROM {schema}.queues
)
SELECT n.queue, coalesce(l.scheduled, 0) AS scheduled, coalesce(l.ready, 0) AS ready, coalesce(l.running, 0) AS running,
  coalesce(l.parked, 0) AS parked, coalesce(p.succeeded, 0) AS succeeded, coalesce(p.failed, 0) AS failed,
  coalesce(p.cancelled, 0) AS cancelled, t.now - l.ready_since AS oldest_ready_age,
  coalesce(l.came, 0) + coalesce(r.came, 0) AS came, coalesce(r.went, 0) AS went, coalesce(w.live, 0) AS live_workers,
  coalesce(q.paused, false) AS paused, q.reason
FROM names AS n CROSS JOIN t LEFT JOIN live AS l ON l.queue = n.queue LEFT JOIN past AS p ON p.queue = n.queue
  LEFT JOIN recent AS r ON r.queue = n.queue LEFT JOIN workers AS w ON w.queue = n.queue
  LEFT JOIN {schema}.queues AS q ON q.name = n.queue
ORDER BY n.queue
