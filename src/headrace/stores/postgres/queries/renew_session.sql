-- Renew a lease that has not ended, and hear which running jobs are to be cancelled; no row: the session is dead.
-- Locks: the session's row. Index: primary key, then jobs_to_cancel.
WITH renewed AS (
  UPDATE {schema}.sessions
  SET expires_at = coalesce(%(now)s::timestamptz, now()) + %(lease)s::interval, stats = %(stats)s::json
  WHERE id = %(session)s AND expires_at > coalesce(%(now)s::timestamptz, now())
  RETURNING id
)
SELECT ARRAY(SELECT j.id FROM {schema}.jobs AS j
  WHERE j.cancel_requested AND j.session = renewed.id AND j.state = 'running') AS cancel_jobs
FROM renewed
