-- Look at a slice of the successes that are older than their retention, oldest first and after a time, and remove
-- those that may go (see prune_failed), with their attempts and steps. Says how many went and where the slice ended.
-- The queue is asked of the slice, not of the index: else a rare one would make a slice walk all history.
-- Locks: the removed rows, skipping locked ones. Index: finished_jobs_succeeded, then the primary keys.
WITH seen AS MATERIALIZED (
  SELECT f.id, f.queue, f.batch_id, f.retry_of, f.run_id, f.settled, f.finished_at FROM {schema}.finished_jobs AS f
  WHERE f.state IS NOT DISTINCT FROM 'succeeded'
    AND f.finished_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
    AND f.finished_at > coalesce(%(after)s::timestamptz, '-infinity')
  ORDER BY f.finished_at FETCH FIRST (%(slice)s::int) ROWS WITH TIES
), old AS MATERIALIZED (
  SELECT f.id FROM seen AS s JOIN {schema}.finished_jobs AS f ON f.id = s.id
  WHERE (%(queue)s::text IS NULL OR s.queue = %(queue)s::text)
    AND (s.batch_id IS NULL
      OR EXISTS (SELECT FROM {schema}.batches AS b WHERE b.id = s.batch_id AND b.state = 'closed'))
    AND (s.retry_of IS NULL OR NOT EXISTS (SELECT FROM {schema}.finished_jobs AS o WHERE o.id = s.retry_of))
    AND (s.run_id IS NULL OR s.settled)
  ORDER BY s.finished_at LIMIT %(limit)s::int FOR UPDATE OF f SKIP LOCKED
), tries AS (
  DELETE FROM {schema}.attempts WHERE job_id = ANY(ARRAY(SELECT id FROM old))
), logged AS (
  DELETE FROM {schema}.attempt_logs WHERE job_id = ANY(ARRAY(SELECT id FROM old))
), stored AS (
  DELETE FROM {schema}.steps WHERE job_id = ANY(ARRAY(SELECT id FROM old))
), gone AS (
  DELETE FROM {schema}.finished_jobs WHERE id = ANY(ARRAY(SELECT id FROM old)) RETURNING id
)
SELECT (SELECT count(*) FROM gone) AS removed, (SELECT max(finished_at) FROM seen) AS last
