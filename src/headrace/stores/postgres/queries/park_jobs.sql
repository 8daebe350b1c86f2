-- End attempts whose jobs wait for a signal, a time, or whichever comes first, each under its fence. One whose signal has
-- come queues up at once, or is held while its batch is paused; one whose cancel was requested is cancelled. Parking and sending take turns on the row of the
-- key, which is made here: what is sent meanwhile is seen here, or sees the job parked. No record: they would have no end.
-- Locks: the job rows in id order, then the signals by key. Index: primary keys (for the fence see finish_jobs).
WITH held AS MATERIALIZED (
  SELECT j.*, d.error, d.usage, d.key, d.wait, d.log, CASE WHEN d.progressed THEN 0 ELSE j.lone_crashes END AS alone,
    coalesce(%(now)s::timestamptz, now()) AS now
  FROM unnest(%(ids)s::uuid[], %(attempts)s::int[], %(keys)s::text[], %(waits)s::interval[], %(errors)s::json[],
      %(usages)s::json[], %(progressed)s::boolean[], %(logs)s::json[])
      AS d (id, attempt, key, wait, error, usage, progressed, log)
    JOIN {schema}.jobs AS j ON j.id = d.id
  WHERE j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid
    AND j.state IS NOT DISTINCT FROM 'running'
  ORDER BY j.id
  FOR UPDATE OF j
), awaited AS (
  INSERT INTO {schema}.signals AS s (key, created_at)
  SELECT DISTINCT key COLLATE "C", now FROM held WHERE key IS NOT NULL AND NOT cancel_requested ORDER BY 1
  ON CONFLICT (key) DO UPDATE SET key = excluded.key
  RETURNING s.key, s.payload IS NOT NULL AS came
), judged AS MATERIALIZED (
  SELECT *, CASE WHEN cancel_requested THEN 'cancelled'
    WHEN (key IN (SELECT key FROM awaited WHERE came)) IS TRUE THEN coalesce((SELECT 'held' FROM {schema}.batches AS b
      WHERE b.id = h.batch_id AND b.paused_at IS NOT NULL), 'ready')
    ELSE 'parked' END AS verdict
  FROM held AS h
), back AS (
  UPDATE {schema}.jobs AS j
  SET state = CASE v.verdict WHEN 'held' THEN 'parked' ELSE v.verdict END, session = NULL, started_at = NULL, lone_crashes = v.alone,
    parked_on = CASE v.verdict WHEN 'parked' THEN v.key WHEN 'held' THEN chr(31) || j.batch_id END,
    run_at = CASE v.verdict WHEN 'parked' THEN v.now + v.wait WHEN 'ready' THEN j.run_at END,
    sort_at = CASE WHEN j.lane ~ '"key_limit":1[,}]' THEN j.sort_at
      ELSE v.now + CASE v.verdict WHEN 'parked' THEN coalesce(v.wait, interval '0') ELSE interval '0' END
        - (%(head_starts)s::interval[])[j.priority + 1] END
  FROM judged AS v
  WHERE j.id = v.id AND v.verdict <> 'cancelled'
), logged AS (
  INSERT INTO {schema}.attempt_logs (job_id, attempt, log) SELECT id, attempt, log FROM judged WHERE log IS NOT NULL
  ON CONFLICT (job_id, attempt) DO NOTHING
), forgotten AS (
  DELETE FROM {schema}.attempt_logs AS l USING judged AS v
  WHERE l.job_id = v.id AND v.log IS NOT NULL AND l.attempt <= v.attempt - %(max_logs)s::int + 1
), gone AS (
  DELETE FROM {schema}.jobs AS j USING judged AS v WHERE j.id = v.id AND v.verdict = 'cancelled'
), ended AS (
  INSERT INTO {schema}.finished_jobs
    (id, batch_id, session, retry_of, run_at, created_at, started_at, finished_at, timeout, ordinal, attempt, priority,
     failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, lane, cost,
     args, error, usage, run_id, node)
  SELECT id, batch_id, session, retry_of, run_at, created_at, started_at, now, timeout, ordinal, attempt, priority,
    failures, crashes, max_attempts, at_most_once, cancel_requested, verdict, queue, task,
    lane, cost, args, error, usage, run_id, node
  FROM judged WHERE verdict = 'cancelled'
  ON CONFLICT (id) DO NOTHING
)
SELECT DISTINCT id FROM judged
