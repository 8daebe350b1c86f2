-- What handlers logged in the attempts of a job, oldest first.
-- Locks: none. Index: primary key.
SELECT attempt, log FROM {schema}.attempt_logs WHERE job_id = %(job_id)s ORDER BY attempt
