-- The stored steps of a job.
-- Locks: none. Index: primary key.
SELECT name, value FROM {schema}.steps WHERE job_id = %(job_id)s
