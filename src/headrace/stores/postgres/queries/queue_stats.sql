-- Every queue that has jobs, live workers or a setting, with its counts, its oldest ready job and last minute's rates.
-- Each of the two tables is read by a share of its pages, in percent: at 100 the figures are counts.
-- Locks: none. Index: none; reads that share of both tables.
WITH t AS MATERIALIZED (
  SELECT n.now, n.now - %(window)s::interval AS since
  FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS n
), live AS MATERIALIZED (
  SELECT j.queue, count(*) FILTER (WHERE j.state = 'scheduled') AS scheduled,
    count(*) FILTER (WHERE j.state = 'ready') AS ready,
    count(*) FILTER (WHERE j.state = 'ready' AND j.lane IS NOT NULL) AS capped,
    count(*) FILTER (WHERE j.state = 'running') AS running,
    count(*) FILTER (WHERE j.state = 'parked') AS parked,
    min(j.sort_at + (%(head_starts)s::interval[])[j.priority + 1]) FILTER (WHERE j.state = 'ready') AS ready_since,
    count(*) FILTER (WHERE j.created_at > t.since) AS came
  FROM {schema}.jobs AS j TABLESAMPLE SYSTEM (%(live_percent)s::real) REPEATABLE (0) CROSS JOIN t GROUP BY j.queue
), past AS MATERIALIZED (
  SELECT f.queue, count(*) FILTER (WHERE f.state = 'succeeded') AS succeeded,
    count(*) FILTER (WHERE f.state = 'failed') AS failed, count(*) FILTER (WHERE f.state = 'cancelled') AS cancelled,
    count(*) FILTER (WHERE f.finished_at > t.since) AS went, count(*) FILTER (WHERE f.created_at > t.since) AS came
  FROM {schema}.finished_jobs AS f TABLESAMPLE SYSTEM (%(past_percent)s::real) REPEATABLE (0) CROSS JOIN t
  GROUP BY f.queue
), workers AS MATERIALIZED (
  SELECT q.name AS queue, count(*) AS live FROM t CROSS JOIN {schema}.sessions AS s
    CROSS JOIN json_object_keys(s.queues) AS q (name)
  WHERE s.expires_at > t.now GROUP BY q.name
), names AS (
  SELECT queue FROM live UNION SELECT queue FROM past UNION SELECT queue FROM workers
  UNION SELECT name FROM {schema}.queues
)
SELECT n.queue, coalesce(l.scheduled, 0) AS scheduled, coalesce(l.ready, 0) AS ready, coalesce(l.capped, 0) AS capped,
  coalesce(l.running, 0) AS running, coalesce(l.parked, 0) AS parked, coalesce(p.succeeded, 0) AS succeeded,
  coalesce(p.failed, 0) AS failed, coalesce(p.cancelled, 0) AS cancelled, l.ready_since,
  coalesce(l.came, 0) AS live_came, coalesce(p.came, 0) AS past_came, coalesce(p.went, 0) AS went,
  coalesce(w.live, 0) AS live_workers, coalesce(q.paused, false) AS paused, q.reason AS paused_reason,
  coalesce(q.closed, false) AS closed, q.alarm_size, q.alarm_age, t.now
FROM names AS n CROSS JOIN t LEFT JOIN live AS l ON l.queue = n.queue LEFT JOIN past AS p ON p.queue = n.queue
  LEFT JOIN workers AS w ON w.queue = n.queue LEFT JOIN {schema}.queues AS q ON q.name = n.queue
ORDER BY n.queue
