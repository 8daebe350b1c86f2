-- Remove closed batches that are old enough and whose jobs are all gone, with their slices and keys.
-- Locks: the removed rows. Index: batches_closed, jobs_batch, finished_jobs_items, primary keys.
WITH old AS MATERIALIZED (
  SELECT b.id, b.task, b.key FROM {schema}.batches AS b
  WHERE b.state = 'closed' AND b.closed_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
    AND NOT EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.batch_id = b.id)
    AND NOT EXISTS (SELECT FROM {schema}.finished_jobs AS f WHERE f.batch_id = b.id)
  ORDER BY b.closed_at LIMIT %(limit)s::int FOR UPDATE OF b SKIP LOCKED
), slices AS (
  DELETE FROM {schema}.batch_slices WHERE batch_id = ANY(ARRAY(SELECT id FROM old))
), names AS (
  DELETE FROM {schema}.idempotency_keys AS k USING old AS o
  WHERE k.scope = 'batch:' || o.task AND k.key = o.key AND k.id = o.id
), rounds AS (
  DELETE FROM {schema}.idempotency_keys WHERE scope = ANY(ARRAY(SELECT 'round:' || id FROM old))
)
DELETE FROM {schema}.batches WHERE id = ANY(ARRAY(SELECT id FROM old)) RETURNING id
