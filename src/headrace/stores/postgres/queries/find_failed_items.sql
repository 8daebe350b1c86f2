-- The failed items of a batch that were not retried, oldest first.
-- Locks: none; the caller holds the batch by lock_batch. Index: finished_jobs_unsuccessful, the two retry indexes.
SELECT f.id FROM {schema}.finished_jobs AS f
WHERE f.batch_id = %(batch_id)s AND f.state = 'failed'
  AND NOT EXISTS (SELECT FROM {schema}.jobs AS r WHERE r.retry_of = f.id)
  AND NOT EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id)
ORDER BY f.ordinal
