-- The ended attempts of a job, the one that ended it included; a job that ended while it waited has no such one.
-- Locks: none. Index: both primary keys.
SELECT attempt, outcome, started_at, finished_at, session, error FROM {schema}.attempts WHERE job_id = %(job_id)s
UNION ALL
SELECT attempt, state, started_at, finished_at, session, error FROM {schema}.finished_jobs
WHERE id = %(job_id)s AND session IS NOT NULL
ORDER BY attempt
