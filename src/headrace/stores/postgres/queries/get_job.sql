-- One job, finished or not; in one snapshot it is in exactly one of the tables.
-- Locks: none. Index: both primary keys.
SELECT id, task, queue, state, priority, attempt, failures, crashes, max_attempts, created_at, run_at, started_at,
  NULL::timestamptz AS finished_at, session, args, NULL::json AS result, NULL::json AS error, batch_id, ordinal, retry_of,
  cancel_requested, NULL::json AS usage, run_id, node
FROM {schema}.jobs WHERE id = %(job_id)s
UNION ALL
SELECT id, task, queue, state, priority, attempt, failures, crashes, max_attempts, created_at, run_at, started_at,
  finished_at, session, args, result, error, batch_id, ordinal, retry_of, cancel_requested, usage, run_id, node
FROM {schema}.finished_jobs WHERE id = %(job_id)s
