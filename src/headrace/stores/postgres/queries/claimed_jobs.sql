-- Read what a session runs in a queue, after a claim whose answer was lost.
-- Locks: none. Index: none, a scan of the hot table: an index on running rows would slow down every claim and finish.
SELECT j.id, j.task, j.queue, j.args, j.attempt, j.failures, j.crashes, j.max_attempts, j.timeout,
  j.cancel_requested, j.batch_id, j.ordinal, j.sort_at
FROM {schema}.jobs AS j
WHERE j.state = 'running' AND j.session = %(session)s AND j.queue = %(queue)s
ORDER BY j.sort_at, j.id
