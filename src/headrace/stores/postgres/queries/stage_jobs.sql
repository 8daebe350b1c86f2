-- Move scheduled jobs that are due, and parked ones whose time has come, to ready, those of paused batches to held;
-- their place was fixed when they were scheduled or parked. What only came to be held is not told.
-- Locks: the due rows, skipping locked ones. Index: jobs_due and jobs_parked_due, then primary key, batches_paused.
WITH staged AS (
  UPDATE {schema}.jobs AS j
  SET (state, parked_on, run_at) = (
    SELECT CASE WHEN p.id IS NULL THEN 'ready' ELSE 'parked' END, chr(31) || p.id, CASE WHEN p.id IS NULL THEN j.run_at END
    FROM (SELECT) AS one LEFT JOIN {schema}.batches AS p ON p.id = j.batch_id AND p.paused_at IS NOT NULL)
  WHERE j.id = ANY((ARRAY(
    SELECT d.id FROM {schema}.jobs AS d
    WHERE d.state = 'scheduled' AND d.run_at <= coalesce(%(now)s::timestamptz, now())
    ORDER BY d.run_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED) || ARRAY(
    SELECT d.id FROM {schema}.jobs AS d
    WHERE d.state = 'parked' AND d.run_at <= coalesce(%(now)s::timestamptz, now())
    ORDER BY d.run_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))[1 : %(limit)s::int])
  RETURNING j.queue, j.state
)
SELECT DISTINCT queue FROM staged WHERE state = 'ready'
