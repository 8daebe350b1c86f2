-- End attempts for good as finish_jobs does, and keep what was logged in those that logged something. A statement of its
-- own: the many that log nothing pay nothing for it, and these not for the effects that finish_nodes looks for.
-- Locks: the ended rows in the order given (the caller sorts by id); the claimed rows as claim_jobs does.
-- Index: primary keys (for the fence see finish_jobs); to claim, those of claim_jobs.
WITH gone AS (
  DELETE FROM {schema}.jobs AS j
  USING unnest(%(ids)s::uuid[], %(attempts)s::int[], %(results)s::json[], %(endings)s::json[],
      %(logs)s::json[]) AS d (id, attempt, result, ending, log)
  WHERE j.id = d.id AND j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid
    AND j.state IS NOT DISTINCT FROM 'running'
  RETURNING j.id, j.batch_id, j.session, j.retry_of, j.run_at, j.created_at, j.started_at,
    coalesce(%(now)s::timestamptz, now()) AS finished_at, j.timeout, j.ordinal, j.attempt, j.priority,
    j.failures + coalesce((d.ending ->> 'failures')::smallint, 0::smallint) AS failures,
    j.crashes + coalesce((d.ending ->> 'crashes')::smallint, 0::smallint) AS crashes, j.max_attempts, j.at_most_once,
    j.cancel_requested, coalesce(d.ending ->> 'state', 'succeeded') AS state, j.queue, j.task, j.lane,
    j.cost, j.args, d.result, d.ending -> 'error' AS error, d.ending -> 'usage' AS usage,
    j.run_id, j.node, d.log
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
     args, result, error, usage, run_id, node)
  SELECT id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
    failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
    args, result, error, usage, run_id, node
  FROM gone
), logged AS (
  INSERT INTO {schema}.attempt_logs (job_id, attempt, log) SELECT id, attempt, log FROM gone WHERE log IS NOT NULL
  ON CONFLICT (job_id, attempt) DO NOTHING
), claimed AS (
  {claim_jobs}
)
SELECT *, NULL::uuid[] AS ended FROM claimed
UNION ALL
SELECT NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, ARRAY(SELECT id FROM gone)
