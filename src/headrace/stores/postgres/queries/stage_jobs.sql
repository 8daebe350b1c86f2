-- Move scheduled jobs that are due, and parked ones whose time has come, to ready; their place was fixed when they were
-- scheduled or parked.
-- Locks: the due rows, skipping locked ones. Index: jobs_due and jobs_parked_due, then primary key.
WITH staged AS (
  UPDATE {schema}.jobs AS j SET state = 'ready', parked_on = NULL
  WHERE j.id = ANY((ARRAY(
    SELECT d.id FROM {schema}.jobs AS d
    WHERE d.state = 'scheduled' AND d.run_at <= coalesce(%(now)s::timestamptz, now())
    ORDER BY d.run_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED) || ARRAY(
    SELECT d.id FROM {schema}.jobs AS d
    WHERE d.state = 'parked' AND d.run_at <= coalesce(%(now)s::timestamptz, now())
    ORDER BY d.run_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))[1 : %(limit)s::int])
  RETURNING j.queue
)
SELECT DISTINCT queue FROM staged
