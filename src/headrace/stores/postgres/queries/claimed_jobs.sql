-- Read what a session runs in a queue, after a claim or admission whose answer was lost. A job behind a breaker that
-- refuses, and that is not its probe, is to be failed.
-- Locks: none. Index: none, a scan of the hot table: an index on running rows would slow down every claim and finish.
SELECT j.id, j.task, j.queue, j.args, j.attempt, j.failures, j.crashes, j.max_attempts, j.timeout,
  j.cancel_requested, j.batch_id, j.ordinal, j.sort_at, j.run_id, j.node,
  q.gated, o.name AS refused_by, nullif(o.again_at, '-infinity') AS again_at
FROM {schema}.jobs AS j LEFT JOIN {schema}.queues AS q ON q.name = j.queue
LEFT JOIN LATERAL (
  SELECT s.name, s.again_at FROM {schema}.gate_stands(
    ARRAY(SELECT n.kind FROM {schema}.gate_needs(j.queue, j.lane::jsonb) AS n WHERE n.kind = 'breaker'),
    ARRAY(SELECT n.name FROM {schema}.gate_needs(j.queue, j.lane::jsonb) AS n WHERE n.kind = 'breaker'),
    coalesce(%(now)s::timestamptz, now()), NULL) AS s
  WHERE j.lane LIKE '%"breakers":%' AND s.refuses
    AND {schema}.passes_at(1, s.room, s.burst, s.per_second, s.again_at, coalesce(%(now)s::timestamptz, now())) > '-infinity'
    AND NOT EXISTS (SELECT FROM {schema}.breakers AS b
      WHERE b.key = s.name AND b.probe_job = j.id AND b.probe_attempt = j.attempt)
  ORDER BY s.name COLLATE "C" LIMIT 1) AS o ON true
WHERE j.state = 'running' AND j.session = %(session)s AND j.queue = %(queue)s
ORDER BY j.sort_at, j.id
