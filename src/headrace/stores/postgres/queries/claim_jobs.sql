-- Move ready jobs to running, in claim order, for a session that lives. One statement, no transaction. Skips queues that
-- are paused or gated (there admit_jobs starts everything) and batches being cancelled. The array makes the planner
-- fetch rows by primary key.
-- Locks: the claimed rows, skipping locked ones. Index: jobs_claim, then primary key.
UPDATE {schema}.jobs AS j
SET state = 'running', session = %(session)s, attempt = j.attempt + 1,
  started_at = coalesce(%(now)s::timestamptz, now())
WHERE j.id = ANY(ARRAY(
  SELECT r.id FROM {schema}.jobs AS r
  WHERE r.queue = %(queue)s AND r.state = 'ready' AND r.lane IS NULL
    AND (r.sort_at, r.id) > (coalesce(%(after_at)s::timestamptz, '-infinity'),
      coalesce(%(after_id)s::uuid, '00000000-0000-0000-0000-000000000000'))
    AND EXISTS (SELECT FROM {schema}.sessions AS s
      WHERE s.id = %(session)s AND s.expires_at > coalesce(%(now)s::timestamptz, now()))
    AND NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = %(queue)s AND (q.paused OR q.gated))
    AND (r.batch_id IS NULL
      OR r.batch_id <> ALL(ARRAY(SELECT b.id FROM {schema}.batches AS b WHERE b.state = 'cancelling')))
  ORDER BY r.sort_at, r.id LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))
RETURNING j.id, j.task, j.queue, j.args, j.attempt, j.failures, j.crashes, j.max_attempts, j.timeout,
  j.cancel_requested, j.batch_id, j.ordinal, j.sort_at, j.run_id, j.node
