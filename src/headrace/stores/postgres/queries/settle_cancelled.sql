-- Cancel jobs of a batch being cancelled that have not started, and ask its running ones to stop.
-- Locks: the job rows, skipping locked ones (a claim that is committing; the next sweep meets it as running).
-- Index: primary key of batches, jobs_batch.
WITH unstarted AS MATERIALIZED (
  SELECT j.id FROM {schema}.jobs AS j
  WHERE j.batch_id = %(batch_id)s AND j.state IN ('scheduled', 'ready', 'parked')
    AND EXISTS (SELECT FROM {schema}.batches AS b WHERE b.id = %(batch_id)s AND b.state = 'cancelling')
  LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
), running AS MATERIALIZED (
  SELECT j.id FROM {schema}.jobs AS j
  WHERE j.batch_id = %(batch_id)s AND j.state = 'running' AND NOT j.cancel_requested
    AND EXISTS (SELECT FROM {schema}.batches AS b WHERE b.id = %(batch_id)s AND b.state = 'cancelling')
  FOR UPDATE SKIP LOCKED
), asked AS (
  UPDATE {schema}.jobs AS j SET cancel_requested = true FROM running AS r WHERE j.id = r.id
), gone AS (
  DELETE FROM {schema}.jobs AS j USING unstarted AS u WHERE j.id = u.id RETURNING j.*
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
