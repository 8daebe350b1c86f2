-- The jobs of a run that are not final.
-- Locks: none. Index: jobs_run.
SELECT id AS job_id, node, state, queue, attempt, failures, started_at, run_at, parked_on
FROM {schema}.jobs WHERE run_id = %(run_id)s::uuid ORDER BY id
