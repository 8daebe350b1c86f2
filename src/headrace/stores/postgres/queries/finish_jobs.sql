-- End attempts for good: move their jobs to history, each under its fence (id, attempt, session, running), and in the
-- same commit claim up to a limit. `endings` is NULL for a plain success. The last row holds the ids that were ended;
-- what is missing had lost its job. One that had ended before makes it fail, see drop_ended_again (ON CONFLICT is slow).
-- Locks: the ended rows in the order given (the caller sorts by id); the claimed rows as claim_jobs does.
-- Index: primary key, which the fence must never make the planner leave: IS NOT DISTINCT FROM fits no index, an
-- equality would walk all rows of the session; to claim, those of claim_jobs.
WITH gone AS (
  DELETE FROM {schema}.jobs AS j
  USING unnest(%(ids)s::uuid[], %(attempts)s::int[], %(results)s::json[], %(endings)s::json[])
    AS d (id, attempt, result, ending)
  WHERE j.id = d.id AND j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid
    AND j.state IS NOT DISTINCT FROM 'running'
  RETURNING j.id, j.batch_id, j.session, j.retry_of, j.run_at, j.created_at, j.started_at,
    coalesce(%(now)s::timestamptz, now()) AS finished_at, j.timeout, j.ordinal, j.attempt, j.priority,
    j.failures + coalesce((d.ending ->> 'failures')::smallint, 0::smallint) AS failures,
    j.crashes + coalesce((d.ending ->> 'crashes')::smallint, 0::smallint) AS crashes, j.max_attempts, j.at_most_once,
    j.cancel_requested, coalesce(d.ending ->> 'state', 'succeeded') AS state, j.queue, j.task, j.lane,
    j.cost, j.args, d.result, d.ending -> 'error' AS error, d.ending -> 'usage' AS usage,
    j.run_id, j.node
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
     args, result, error, usage, run_id, node)
  SELECT * FROM gone
), claimed AS (
  {claim_jobs}
)
SELECT *, NULL::uuid[] AS ended FROM claimed
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ARRAY(SELECT id FROM gone)
