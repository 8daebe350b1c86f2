-- Those of the given jobs that are final.
-- Locks: none. Index: primary key.
SELECT id, task, queue, state, priority, attempt, failures, crashes, max_attempts, created_at, run_at, started_at,
  finished_at, session, args, result, error, batch_id, ordinal, retry_of, cancel_requested, usage, run_id, node
FROM {schema}.finished_jobs WHERE id = ANY(%(job_ids)s::uuid[])
