-- The newest failed items of a batch that were not retried. Of their errors only what stands before the trace: as our
-- encoder writes them that is the first place with these signs, for within a text each quote follows a backslash. No
-- function of the server reads them as JSON, since they may hold characters that it refuses.
-- Locks: none. Index: finished_jobs_unsuccessful, the retry indexes, primary key.
WITH newest AS MATERIALIZED (
  SELECT f.id, f.finished_at FROM {schema}.finished_jobs AS f
  WHERE f.batch_id = %(batch_id)s AND f.state = 'failed'
    AND NOT EXISTS (SELECT FROM {schema}.jobs AS r WHERE r.retry_of = f.id)
    AND NOT EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id)
  ORDER BY f.finished_at DESC, f.id DESC LIMIT %(limit)s::int
)
SELECT f.id, f.finished_at, f.task, f.queue, f.batch_id, f.run_id, f.node,
  CASE WHEN e.cut > 0 THEN left(f.error::text, e.cut - 1) || '}' ELSE f.error::text END AS error
FROM newest AS n JOIN {schema}.finished_jobs AS f ON f.id = n.id
  CROSS JOIN LATERAL (SELECT position(',"trace":' IN f.error::text) AS cut) AS e
ORDER BY n.finished_at DESC, n.id DESC
