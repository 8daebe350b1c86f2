-- Take back running jobs whose session is missing or has expired, in a slice of the table's pages: ready again at their
-- old place with one more crash, but for attempts that a farm had begun, which is the step of that name; at-most-once
-- jobs fail, jobs whose cancel was requested are cancelled. Jobs of a paused batch are held at their old place.
-- Slices of pages need no index on running rows, which would cost every job more than these rare searches.
-- Locks: the rows taken back, skipping locked ones. Index: none, a range of pages; primary keys of steps, and to
-- write; batches_paused.
WITH lost AS MATERIALIZED (
  SELECT j.*, coalesce(%(now)s::timestamptz, now()) AS now,
    (SELECT b.id FROM {schema}.batches AS b WHERE b.id = j.batch_id AND b.paused_at IS NOT NULL) AS paused,
    CASE WHEN j.cancel_requested THEN 'cancelled' WHEN j.at_most_once THEN 'failed' ELSE 'ready' END AS verdict,
    coalesce((SELECT s.value ->> 'attempt' FROM {schema}.steps AS s
      WHERE s.job_id = j.id AND s.name = %(begun)s::text) = j.attempt::text, false) AS begun
  FROM {schema}.jobs AS j
  WHERE j.ctid >= ('(' || %(first_page)s::bigint || ',0)')::tid
    AND j.ctid < ('(' || %(end_page)s::bigint || ',0)')::tid
    AND j.state = 'running'
    AND NOT EXISTS (SELECT FROM {schema}.sessions AS s
      WHERE s.id = j.session AND s.expires_at > coalesce(%(now)s::timestamptz, now()))
  LIMIT %(limit)s::int
  FOR UPDATE OF j SKIP LOCKED
), back AS (
  UPDATE {schema}.jobs AS j
  SET state = CASE WHEN l.paused IS NULL THEN 'ready' ELSE 'parked' END, parked_on = chr(31) || l.paused,
    run_at = CASE WHEN l.paused IS NULL THEN j.run_at END, session = NULL, started_at = NULL,
    crashes = j.crashes + (NOT l.begun)::int
  FROM lost AS l WHERE j.id = l.id AND l.verdict = 'ready'
), noted AS (
  INSERT INTO {schema}.attempts (job_id, attempt, session, started_at, finished_at, outcome, error)
  SELECT id, attempt, session, started_at, now, CASE WHEN begun THEN 'lost' ELSE 'crashed' END,
    CASE WHEN begun THEN %(begun_error)s::json ELSE %(error)s::json END
  FROM lost WHERE verdict = 'ready'
  ON CONFLICT (job_id, attempt) DO NOTHING
), gone AS (
  DELETE FROM {schema}.jobs AS j USING lost AS l WHERE j.id = l.id AND l.verdict <> 'ready'
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
     args, error, run_id, node)
  SELECT id, batch_id, session, retry_of, run_at, created_at, started_at, now, timeout, ordinal, attempt, priority,
    failures, crashes + (NOT begun)::int, max_attempts, at_most_once, cancel_requested, verdict, queue, task, lane,
    cost, args, CASE WHEN begun THEN %(begun_error)s::json ELSE %(error)s::json END, run_id, node
  FROM lost WHERE verdict <> 'ready'
  ON CONFLICT (id) DO NOTHING
)
SELECT id, verdict, queue, batch_id FROM lost
