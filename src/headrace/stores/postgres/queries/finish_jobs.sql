-- End attempts for good: move their jobs to history, each under its fence (id, attempt, session, running). One
-- statement; what it does not return had lost its job. A job inserted again after it had ended leaves without a trace.
-- Locks: the job rows, in the order given (the caller sorts by id). Index: primary key, which the fence must never make
-- the planner leave: IS NOT DISTINCT FROM fits no index, an equality would walk all rows of the session.
WITH gone AS (
  DELETE FROM {schema}.jobs AS j
  USING unnest(%(ids)s::uuid[], %(attempts)s::int[], %(states)s::text[], %(results)s::json[], %(errors)s::json[],
    %(usages)s::json[], %(failures)s::smallint[], %(crashes)s::smallint[])
    AS d (id, attempt, state, result, error, usage, failures, crashes)
  WHERE j.id = d.id AND j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid
    AND j.state IS NOT DISTINCT FROM 'running'
  RETURNING j.id, j.batch_id, j.session, j.retry_of, j.run_at, j.created_at, j.started_at,
    coalesce(%(now)s::timestamptz, now()) AS finished_at, j.timeout, j.ordinal, j.attempt, j.priority,
    j.failures + d.failures AS failures, j.crashes + d.crashes AS crashes, j.max_attempts, j.at_most_once,
    j.cancel_requested, d.state, j.queue, j.task, j.limit_key, j.args, d.result, d.error, d.usage
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, limit_key, args, result, error,
     usage)
  SELECT * FROM gone
  ON CONFLICT (id) DO NOTHING
)
SELECT id FROM gone
