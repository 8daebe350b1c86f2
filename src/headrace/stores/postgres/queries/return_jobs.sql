-- End attempts without ending their jobs, each under its fence: scheduled after a delay, or ready again without one. A
-- job whose cancel was requested is cancelled instead; the third crash alone without progress fails it. A released job
-- keeps its place, so that workers that stop do not send the oldest jobs to the back. What would be ready is held while its
-- batch is paused. Only failures, crashes and attempts that were lost elsewhere leave a record: jobs that snooze, or that
-- no worker knows, would write without end.
-- Locks: the job rows in id order, before anything is written. Index: primary key, batches_paused (for the fence see finish_jobs).
WITH held AS MATERIALIZED (
  SELECT j.*, d.error, d.usage, d.delay, d.charged, d.lone, d.released, d.log,
    CASE WHEN d.progressed THEN 0 ELSE j.lone_crashes END + d.lone::int AS alone,
    coalesce(%(now)s::timestamptz, now()) AS now
  FROM unnest(%(ids)s::uuid[], %(attempts)s::int[], %(errors)s::json[], %(usages)s::json[], %(delays)s::interval[],
      %(charged)s::boolean[], %(lone)s::boolean[], %(progressed)s::boolean[], %(released)s::boolean[],
      %(logs)s::json[]) AS d (id, attempt, error, usage, delay, charged, lone, progressed, released, log)
    JOIN {schema}.jobs AS j ON j.id = d.id
  WHERE j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid
    AND j.state IS NOT DISTINCT FROM 'running'
  ORDER BY j.id
  FOR UPDATE OF j
), judged AS MATERIALIZED (
  SELECT *, CASE WHEN cancel_requested THEN 'cancelled' WHEN alone >= %(max_lone_crashes)s::int THEN 'failed'
    WHEN delay > interval '0' THEN 'scheduled'
    ELSE coalesce((SELECT 'parked' FROM {schema}.batches AS b WHERE b.id = h.batch_id AND b.paused_at IS NOT NULL), 'ready')
    END AS verdict
  FROM held AS h
), back AS (
  UPDATE {schema}.jobs AS j
  SET state = v.verdict, session = NULL, started_at = NULL, failures = j.failures + v.charged::int,
    crashes = j.crashes + v.lone::int, lone_crashes = v.alone,
    parked_on = CASE v.verdict WHEN 'parked' THEN chr(31) || j.batch_id END,
    run_at = CASE v.verdict WHEN 'scheduled' THEN v.now + v.delay WHEN 'ready' THEN j.run_at END,
    sort_at = CASE WHEN v.released OR j.lane ~ '"key_limit":1[,}]' THEN j.sort_at
      ELSE v.now + v.delay - (%(head_starts)s::interval[])[j.priority + 1] END
  FROM judged AS v
  WHERE j.id = v.id AND v.verdict IN ('ready', 'parked', 'scheduled')
), noted AS (
  INSERT INTO {schema}.attempts (job_id, attempt, session, started_at, finished_at, outcome, error)
  SELECT id, attempt, session, started_at, now,
    CASE WHEN lone THEN 'crashed' WHEN charged THEN 'failed' ELSE 'lost' END, error
  FROM judged WHERE verdict IN ('ready', 'parked', 'scheduled') AND (lone OR charged OR error IS NOT NULL)
  ON CONFLICT (job_id, attempt) DO NOTHING
), logged AS (
  INSERT INTO {schema}.attempt_logs (job_id, attempt, log) SELECT id, attempt, log FROM judged WHERE log IS NOT NULL
  ON CONFLICT (job_id, attempt) DO NOTHING
), forgotten AS (
  DELETE FROM {schema}.attempt_logs AS l USING judged AS v
  WHERE l.job_id = v.id AND v.log IS NOT NULL AND l.attempt <= v.attempt - %(max_logs)s::int + 1
), gone AS (
  DELETE FROM {schema}.jobs AS j USING judged AS v WHERE j.id = v.id AND v.verdict IN ('failed', 'cancelled')
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
     args, error, usage, run_id, node)
  SELECT id, batch_id, session, retry_of, run_at, created_at, started_at, now, timeout, ordinal, attempt, priority,
    failures + charged::int, crashes + lone::int, max_attempts, at_most_once, cancel_requested, verdict, queue, task,
    lane, cost, args, CASE verdict WHEN 'failed' THEN %(poison)s::json ELSE error END, usage,
    run_id, node
  FROM judged WHERE verdict IN ('failed', 'cancelled')
  ON CONFLICT (id) DO NOTHING
)
SELECT DISTINCT id FROM judged
