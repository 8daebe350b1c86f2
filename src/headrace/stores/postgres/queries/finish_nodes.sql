-- End attempts of jobs of runs for good, as finish_logged does, and with them apply what that sets going: endings of
-- nodes, sums of arrivals, jobs with their steps, the level and the end of runs. Rows name their completion by its
-- number (`by`), whose fence decides; `held` are numbers whose jobs ended before. A run that is not running only keeps
-- endings. An arrival adds to the row once it is locked, so that exactly one decides; its job is inserted then, or not.
-- Locks: jobs in the order given, endings in the order given, sums by (run, path), new jobs and queues that become gated,
-- runs; claimed rows as claim_jobs does. Index: the primary keys (for the fence see finish_jobs), those of claim_jobs.
WITH gone AS (
  DELETE FROM {schema}.jobs AS j
  USING unnest(%(ids)s::uuid[], %(attempts)s::int[], %(results)s::json[], %(endings)s::json[], %(runs)s::uuid[],
      %(logs)s::json[])
    WITH ORDINALITY AS d (id, attempt, result, ending, run, log, number)
  WHERE j.id = d.id AND j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid
    AND j.state IS NOT DISTINCT FROM 'running'
  RETURNING j.id, j.batch_id, j.session, j.retry_of, j.run_at, j.created_at, j.started_at,
    coalesce(%(now)s::timestamptz, now()) AS finished_at, j.timeout, j.ordinal, j.attempt, j.priority,
    j.failures + coalesce((d.ending ->> 'failures')::smallint, 0::smallint) AS failures,
    j.crashes + coalesce((d.ending ->> 'crashes')::smallint, 0::smallint) AS crashes, j.max_attempts, j.at_most_once,
    j.cancel_requested, coalesce(d.ending ->> 'state', 'succeeded') AS state, j.queue, j.task, j.lane,
    j.cost, j.args, d.result, d.ending -> 'error' AS error, d.ending -> 'usage' AS usage, j.run_id, j.node,
    d.run AS effects_of, d.log, d.number::int AS number
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
     args, result, error, usage, run_id, node, settled)
  SELECT id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
    failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
    args, result, error, usage, run_id, node, CASE WHEN effects_of IS NOT NULL THEN true END
  FROM gone
), logged AS (
  INSERT INTO {schema}.attempt_logs (job_id, attempt, log) SELECT id, attempt, log FROM gone WHERE log IS NOT NULL
  ON CONFLICT (job_id, attempt) DO NOTHING
), known AS MATERIALIZED (
  SELECT h.number, r.state = 'running' AS running
  FROM (SELECT number FROM gone WHERE effects_of IS NOT NULL UNION ALL SELECT unnest(%(held)s::int[])) AS h
    JOIN {schema}.runs AS r ON r.id = (%(runs)s::uuid[])[h.number]
), kept AS (
  INSERT INTO {schema}.run_nodes
    (run_id, path, state, output, port, error, artifact, attempts, reused, started_at, finished_at)
  SELECT (%(runs)s::uuid[])[e.by], e.path, e.state, e.output, e.port, e.error, e.artifact, e.attempts, e.reused,
    e.started_at, coalesce(%(now)s::timestamptz, now())
  FROM unnest(%(node_by)s::int[], %(node_paths)s::text[], %(node_states)s::text[], %(node_outputs)s::json[],
      %(node_ports)s::text[], %(node_errors)s::json[], %(node_artifacts)s::text[], %(node_attempts)s::int[],
      %(node_reused)s::boolean[], %(node_started)s::timestamptz[])
      AS e (by, path, state, output, port, error, artifact, attempts, reused, started_at)
  WHERE (e.by IN (SELECT number FROM known)) IS TRUE
  ON CONFLICT (run_id, path) DO NOTHING
), counted AS (
  INSERT INTO {schema}.run_joins AS j (run_id, path, total, need, remaining, fired, decided)
  SELECT s.run_id, s.path, s.total, s.need, s.total - s.count, s.fired,
    (s.fired >= s.need OR s.total <= s.count)::int
  FROM (SELECT (%(runs)s::uuid[])[a.by] AS run_id, a.path, max(a.total) AS total, max(a.need) AS need,
      sum(a.count)::int AS count, sum(a.fired)::int AS fired
    FROM unnest(%(arrival_by)s::int[], %(arrival_paths)s::text[], %(totals)s::int[], %(needs)s::int[],
        %(counts)s::int[], %(fireds)s::int[]) AS a (by, path, total, need, count, fired)
    WHERE (a.by IN (SELECT number FROM known WHERE running)) IS TRUE
    GROUP BY 1, 2) AS s
  ORDER BY s.run_id, s.path COLLATE "C"
  ON CONFLICT (run_id, path) DO UPDATE
    SET remaining = j.remaining - (excluded.total - excluded.remaining), fired = j.fired + excluded.fired,
      decided = CASE WHEN j.decided > 0 THEN 2 ELSE (j.fired + excluded.fired >= j.need
        OR j.remaining <= excluded.total - excluded.remaining)::int END
  RETURNING j.run_id, j.path, j.decided, j.fired >= j.need AS enough
), offered AS MATERIALIZED (
  SELECT (%(runs)s::uuid[])[o.by] AS arrival_of, o.*
  FROM unnest(%(job_by)s::int[], %(job_paths)s::text[], %(job_ids)s::uuid[], %(job_args)s::json[], %(job_runs)s::uuid[],
      %(job_nodes)s::text[], %(job_run_ats)s::timestamptz[], %(job_specs)s::int[])
      AS o (by, path, id, args, run_id, node, run_at, spec)
), wanted AS MATERIALIZED (
  SELECT id, args, run_id, node, run_at, spec FROM offered AS o
  WHERE path IS NULL AND (by IN (SELECT number FROM known WHERE running)) IS TRUE
  UNION ALL
  SELECT id, args, run_id, node, run_at, spec FROM offered
  WHERE ((arrival_of, path) IN (SELECT run_id, path FROM counted WHERE decided = 1 AND enough)) IS TRUE
  UNION ALL
  SELECT id, args, run_id, node, run_at, %(passed_over)s::int FROM offered
  WHERE ((arrival_of, path) IN (SELECT run_id, path FROM counted WHERE decided = 1 AND NOT enough)) IS TRUE
), spec AS MATERIALIZED (
  SELECT * FROM unnest(%(spec_queues)s::text[], %(spec_tasks)s::text[], %(spec_priorities)s::smallint[],
      %(spec_max_attempts)s::smallint[], %(spec_timeouts)s::interval[], %(spec_at_most_once)s::boolean[],
      %(spec_lanes)s::text[], %(spec_costs)s::double precision[], %(spec_head_starts)s::interval[])
      WITH ORDINALITY AS s (queue, task, priority, max_attempts, timeout, at_most_once, lane, cost, head_start, number)
), gated AS (
  INSERT INTO {schema}.queues (name, gated)
  SELECT DISTINCT s.queue, true FROM spec AS s
  WHERE s.lane IS NOT NULL AND (s.number IN (SELECT spec FROM wanted)) IS TRUE
    AND NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = s.queue AND q.gated)
  ORDER BY s.queue
  ON CONFLICT (name) DO UPDATE SET gated = true
), made AS (
  INSERT INTO {schema}.jobs
    (id, state, sort_at, run_at, created_at, queue, task, priority, max_attempts, timeout, at_most_once, lane,
     cost, args, run_id, node)
  SELECT w.id, CASE WHEN w.run_at > t.now THEN 'scheduled' ELSE 'ready' END, greatest(w.run_at, t.now) - s.head_start,
    w.run_at, t.now, s.queue, s.task, s.priority, s.max_attempts, s.timeout, s.at_most_once, s.lane, s.cost, w.args,
    w.run_id, w.node
  FROM wanted AS w JOIN spec AS s ON s.number = w.spec,
    (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
  ON CONFLICT (id) DO NOTHING
), carried AS (
  INSERT INTO {schema}.steps (job_id, name, value, created_at)
  SELECT c.job_id, c.name, c.value, coalesce(%(now)s::timestamptz, now())
  FROM unnest(%(step_by)s::int[], %(step_jobs)s::uuid[], %(step_names)s::text[], %(step_values)s::json[])
    AS c (by, job_id, name, value)
  WHERE (c.by IN (SELECT number FROM known WHERE running)) IS TRUE
  ON CONFLICT (job_id, name) DO NOTHING
), moved AS (
  UPDATE {schema}.runs AS r
  SET level = coalesce(m.level, r.level), reason = CASE WHEN m.level IS NULL THEN r.reason ELSE m.reason END,
    state = coalesce(m.state, r.state), output = m.output, error = m.error,
    finished_at = CASE WHEN m.state IS NOT NULL THEN coalesce(%(now)s::timestamptz, now()) END
  FROM unnest(%(move_by)s::int[], %(move_levels)s::text[], %(move_reasons)s::text[], %(move_states)s::text[],
      %(move_outputs)s::json[], %(move_errors)s::json[]) AS m (by, level, reason, state, output, error)
  WHERE r.id = (%(runs)s::uuid[])[m.by] AND r.state IS NOT DISTINCT FROM 'running'
    AND (m.by IN (SELECT number FROM known WHERE running)) IS TRUE
), claimed AS (
  {claim_jobs}
)
SELECT *, NULL::uuid[] AS ended FROM claimed
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ARRAY(SELECT id FROM gone)
