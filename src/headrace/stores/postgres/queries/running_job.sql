-- The job that runs under a fence, as its claim returned it; no row when the attempt owns it no more.
-- Locks: none. Index: primary key.
SELECT id, task, queue, args, attempt, failures, crashes, max_attempts, timeout, cancel_requested, batch_id, ordinal,
  sort_at, run_id, node
FROM {schema}.jobs
WHERE id = %(job_id)s AND attempt = %(attempt)s::int AND session IS NOT DISTINCT FROM %(session)s::uuid
  AND state IS NOT DISTINCT FROM 'running'
