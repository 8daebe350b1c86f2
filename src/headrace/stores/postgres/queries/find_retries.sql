-- The retries of final jobs, wherever they are by now.
-- Locks: none. Index: jobs_retry, finished_jobs_retry.
SELECT r.retry_of, r.id FROM {schema}.jobs AS r WHERE r.retry_of = ANY(%(job_ids)s::uuid[])
UNION ALL
SELECT r.retry_of, r.id FROM {schema}.finished_jobs AS r WHERE r.retry_of = ANY(%(job_ids)s::uuid[])
