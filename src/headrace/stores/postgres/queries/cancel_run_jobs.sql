-- Cancel waiting jobs of runs that are being cancelled, up to a limit of each, and ask the running ones to stop. Nothing
-- is left to settle of those that are cancelled here; a row tells how many of its run were. The arrays make the planner
-- fetch rows by primary key.
-- Locks: the job rows, skipping locked ones (a claim that is committing; the next sweep meets it as running).
-- Index: runs_state, jobs_run, primary key.
WITH stopped AS MATERIALIZED (
  SELECT r.id FROM {schema}.runs AS r WHERE r.state = 'cancelling'
), unstarted AS MATERIALIZED (
  SELECT w.id FROM stopped AS r CROSS JOIN LATERAL (
    SELECT j.id FROM {schema}.jobs AS j
    WHERE j.run_id = r.id AND j.state IN ('scheduled', 'ready', 'parked')
    LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED) AS w
), running AS MATERIALIZED (
  SELECT w.id FROM stopped AS r CROSS JOIN LATERAL (
    SELECT j.id FROM {schema}.jobs AS j
    WHERE j.run_id = r.id AND j.state = 'running' AND NOT j.cancel_requested
    FOR UPDATE SKIP LOCKED) AS w
), asked AS (
  UPDATE {schema}.jobs AS j SET cancel_requested = true WHERE j.id = ANY(ARRAY(SELECT id FROM running))
), gone AS (
  DELETE FROM {schema}.jobs AS j WHERE j.id = ANY(ARRAY(SELECT id FROM unstarted)) RETURNING j.*
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
     args, run_id, node, settled)
  SELECT id, batch_id, session, retry_of, run_at, created_at, started_at, coalesce(%(now)s::timestamptz, now()), timeout,
    ordinal, attempt, priority, failures, crashes, max_attempts, at_most_once, cancel_requested, 'cancelled', queue, task,
    lane, cost, args, run_id, node, true
  FROM gone
  ON CONFLICT (id) DO NOTHING
)
SELECT s.id, count(g.id) AS cancelled FROM stopped AS s LEFT JOIN gone AS g ON g.run_id = s.id GROUP BY s.id
