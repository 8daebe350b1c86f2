-- Cancel a job that has not started. A claim that holds the row is waited for; then the job runs and stays.
-- Locks: the job row. Index: primary key.
WITH gone AS (
  DELETE FROM {schema}.jobs AS j
  WHERE j.id = %(job_id)s AND j.state IN ('scheduled', 'ready', 'parked')
  RETURNING j.*
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
     args, run_id, node)
  SELECT id, batch_id, session, retry_of, run_at, created_at, started_at, coalesce(%(now)s::timestamptz, now()), timeout,
    ordinal, attempt, priority, failures, crashes, max_attempts, at_most_once, cancel_requested, 'cancelled', queue, task,
    lane, cost, args, run_id, node
  FROM gone
  ON CONFLICT (id) DO NOTHING
)
SELECT id FROM gone
