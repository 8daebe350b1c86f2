-- End runs that are being cancelled and have no live job; run after cancel_run_jobs, in a snapshot of its own. A job that
-- ends meanwhile and inserts others is seen, or they are: both are one commit.
-- Locks: the runs that end. Index: runs_state, jobs_run.
UPDATE {schema}.runs AS r SET state = 'cancelled', finished_at = coalesce(%(now)s::timestamptz, now())
WHERE r.state = 'cancelling' AND NOT EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.run_id = r.id)
RETURNING r.id
