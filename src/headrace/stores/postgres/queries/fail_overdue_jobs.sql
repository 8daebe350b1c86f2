-- End attempts that ran longer than their timeout plus a grace, in a slice of the table's pages, for the leader only:
-- ready again at their old place with one more failure; failed when failures are used up or the job may run only once;
-- cancelled where requested. Jobs of a paused batch are held.
-- Locks: the overdue rows, skipping locked ones. Index: none, a range of pages; primary key to write; batches_paused.
WITH overdue AS MATERIALIZED (
  SELECT j.*, coalesce(%(now)s::timestamptz, now()) AS now,
    (SELECT b.id FROM {schema}.batches AS b WHERE b.id = j.batch_id AND b.paused_at IS NOT NULL) AS paused,
    CASE WHEN j.cancel_requested THEN 'cancelled' WHEN j.at_most_once OR j.failures + 1 >= j.max_attempts THEN 'failed'
      ELSE 'ready' END AS verdict
  FROM {schema}.jobs AS j
  WHERE j.ctid >= ('(' || %(first_page)s::bigint || ',0)')::tid
    AND j.ctid < ('(' || %(end_page)s::bigint || ',0)')::tid
    AND j.state = 'running' AND j.started_at + j.timeout + %(grace)s::interval < coalesce(%(now)s::timestamptz, now())
    AND EXISTS (SELECT FROM {schema}.leader AS l WHERE l.one = %(role)s AND l.session = %(session)s AND l.term = %(term)s
      AND l.expires_at > coalesce(%(now)s::timestamptz, now()))
  LIMIT %(limit)s::int
  FOR UPDATE OF j SKIP LOCKED
), back AS (
  UPDATE {schema}.jobs AS j
  SET state = CASE WHEN o.paused IS NULL THEN 'ready' ELSE 'parked' END, parked_on = chr(31) || o.paused,
    run_at = CASE WHEN o.paused IS NULL THEN j.run_at END, session = NULL, started_at = NULL, failures = j.failures + 1
  FROM overdue AS o WHERE j.id = o.id AND o.verdict = 'ready'
), noted AS (
  INSERT INTO {schema}.attempts (job_id, attempt, session, started_at, finished_at, outcome, error)
  SELECT id, attempt, session, started_at, now, 'failed', %(error)s::json FROM overdue WHERE verdict = 'ready'
  ON CONFLICT (job_id, attempt) DO NOTHING
), gone AS (
  DELETE FROM {schema}.jobs AS j USING overdue AS o WHERE j.id = o.id AND o.verdict <> 'ready'
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
     args, error, run_id, node)
  SELECT id, batch_id, session, retry_of, run_at, created_at, started_at, now, timeout, ordinal, attempt, priority,
    failures + 1, crashes, max_attempts, at_most_once, cancel_requested, verdict, queue, task, lane,
    cost, args, %(error)s::json, run_id, node
  FROM overdue WHERE verdict <> 'ready'
  ON CONFLICT (id) DO NOTHING
)
SELECT id, verdict, queue, batch_id FROM overdue
