-- The tries of one item of a batch, the newest first. For people who look at one item: all of the batch is walked for it.
-- Locks: none. Index: jobs_batch, finished_jobs_items.
SELECT id, task, queue, state, priority, attempt, failures, crashes, max_attempts, created_at, run_at, started_at,
  NULL::timestamptz AS finished_at, session, args, NULL::json AS result, NULL::json AS error, batch_id, ordinal, retry_of,
  cancel_requested, NULL::json AS usage, run_id, node
FROM {schema}.jobs WHERE batch_id = %(batch_id)s::uuid AND ordinal = %(ordinal)s::int
UNION ALL
SELECT id, task, queue, state, priority, attempt, failures, crashes, max_attempts, created_at, run_at, started_at,
  finished_at, session, args, result, error, batch_id, ordinal, retry_of, cancel_requested, usage, run_id, node
FROM {schema}.finished_jobs WHERE batch_id = %(batch_id)s::uuid AND ordinal = %(ordinal)s::int
ORDER BY created_at DESC, id DESC LIMIT %(limit)s::int
