-- Jobs of runs that the store ended without effects, the oldest first. The predicate is that of the index.
-- Locks: none. Index: finished_jobs_unsettled.
SELECT id AS job_id, run_id, node, state, error, attempt FROM {schema}.finished_jobs
WHERE run_id IS NOT NULL AND settled IS NOT TRUE
ORDER BY finished_at, id LIMIT %(limit)s::int
