-- End attempts for good: move their jobs to history, each under its fence (id, attempt, session, running). One
-- statement; what it does not return had lost its job.
-- Locks: the job rows, in the order given (the caller sorts by id). Index: primary key, which the fence on session
-- must never make the planner leave (IS NOT DISTINCT FROM cannot use an index).
WITH gone AS (
  DELETE FROM {schema}.jobs AS j
  USING unnest(%(ids)s::uuid[], %(attempts)s::int[], %(states)s::text[], %(results)s::json[], %(errors)s::json[],
    %(usages)s::json[], %(failures)s::smallint[], %(crashes)s::smallint[])
    AS d (id, attempt, state, result, error, usage, failures, crashes)
  WHERE j.id = d.id AND j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid
    AND j.state = 'running'
  RETURNING j.*, d.state AS final_state, d.result, d.error, d.usage, d.failures AS more_failures,
    d.crashes AS more_crashes
)
INSERT INTO {schema}.finished_jobs
  (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
   failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, limit_key, args, result, error,
   usage)
SELECT id, batch_id, session, retry_of, run_at, created_at, started_at, coalesce(%(now)s::timestamptz, now()), timeout,
  ordinal, attempt, priority, failures + more_failures, crashes + more_crashes, max_attempts, at_most_once,
  cancel_requested, final_state, queue, task, limit_key, args, result, error, usage
FROM gone
RETURNING id
