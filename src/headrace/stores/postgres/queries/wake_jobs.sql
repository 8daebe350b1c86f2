-- Make the jobs ready that are parked on a signal, behind those that wait already; run after store_signal, in a snapshot of
-- its own, so that it sees what parked while that waited for the key. Returns the queues that gained a job.
-- Locks: the woken rows, by id. Index: jobs_parked, then primary key.
WITH woken AS (
  UPDATE {schema}.jobs AS j
  SET state = 'ready', parked_on = NULL, run_at = NULL,
    sort_at = CASE WHEN j.lane ~ '"key_limit":1[,}]' THEN j.sort_at
      ELSE coalesce(%(now)s::timestamptz, now()) - (%(head_starts)s::interval[])[j.priority + 1] END
  WHERE j.id = ANY(ARRAY(
    SELECT p.id FROM {schema}.jobs AS p WHERE p.state = 'parked' AND p.parked_on = %(key)s::text
    ORDER BY p.id FOR UPDATE))
  RETURNING j.queue
)
SELECT DISTINCT queue FROM woken
