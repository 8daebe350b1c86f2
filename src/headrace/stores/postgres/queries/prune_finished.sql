-- Remove final jobs of one queue and state that are older than their retention, with their attempts and steps; items
-- of a batch only once it is closed, and a retry only after the job it repeats: without it that one would count again.
-- Locks: the removed rows, skipping locked ones. Index: finished_jobs_age, then the primary keys.
WITH old AS MATERIALIZED (
  SELECT f.id FROM {schema}.finished_jobs AS f
  WHERE f.queue = %(queue)s AND f.state = %(state)s
    AND f.finished_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
    AND (f.batch_id IS NULL
      OR EXISTS (SELECT FROM {schema}.batches AS b WHERE b.id = f.batch_id AND b.state = 'closed'))
    AND (f.retry_of IS NULL OR NOT EXISTS (SELECT FROM {schema}.finished_jobs AS o WHERE o.id = f.retry_of))
  ORDER BY f.finished_at LIMIT %(limit)s::int FOR UPDATE OF f SKIP LOCKED
), tries AS (
  DELETE FROM {schema}.attempts WHERE job_id = ANY(ARRAY(SELECT id FROM old))
), stored AS (
  DELETE FROM {schema}.steps WHERE job_id = ANY(ARRAY(SELECT id FROM old))
)
DELETE FROM {schema}.finished_jobs WHERE id = ANY(ARRAY(SELECT id FROM old)) RETURNING id
