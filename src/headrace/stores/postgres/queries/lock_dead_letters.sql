-- Hold failed jobs of a queue that were not retried before and had failed by an instant, if one is given, oldest first;
-- those of runs and of batches being cancelled are left.
-- Locks: the history rows, skipping locked ones: another retry has them. Index: finished_jobs_failed, the retry
-- indexes.
SELECT f.id, f.batch_id FROM {schema}.finished_jobs AS f
WHERE f.queue = %(queue)s AND f.state = 'failed' AND f.state IS DISTINCT FROM 'succeeded' AND f.run_id IS NULL
  AND f.finished_at <= coalesce(%(until)s::timestamptz, 'infinity')
  AND NOT EXISTS (SELECT FROM {schema}.jobs AS r WHERE r.retry_of = f.id)
  AND NOT EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id)
  AND NOT EXISTS (SELECT FROM {schema}.batches AS b WHERE b.id = f.batch_id AND b.state = 'cancelling')
ORDER BY f.finished_at, f.id LIMIT %(limit)s::int
FOR UPDATE OF f SKIP LOCKED
