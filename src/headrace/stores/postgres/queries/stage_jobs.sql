-- Move scheduled jobs that are due to ready; their place was fixed when they were scheduled.
-- Locks: the due rows, skipping locked ones. Index: jobs_due, then primary key.
WITH staged AS (
  UPDATE {schema}.jobs AS j SET state = 'ready'
  WHERE j.id = ANY(ARRAY(
    SELECT d.id FROM {schema}.jobs AS d
    WHERE d.state = 'scheduled' AND d.run_at <= coalesce(%(now)s::timestamptz, now())
    ORDER BY d.run_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))
  RETURNING j.queue
)
SELECT DISTINCT queue FROM staged
