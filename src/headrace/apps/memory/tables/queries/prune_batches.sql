-- Delete batches that were made long ago, oldest first, but for those of which a flush still waits for its summary.
-- Locks: the batches, skipping locked ones. Index: batches_created, flushes_batched, primary key of batches.
WITH old AS MATERIALIZED (
  SELECT b.id FROM {schema}.batches AS b
  WHERE b.created_at <= now() - %(older_than)s::interval AND NOT EXISTS (
    SELECT FROM {schema}.flushes AS f
    WHERE f.batch_id = b.id AND f.state = 'waiting' AND f.summary IS NULL AND f.fence = 0 AND NOT f.alone
  )
  ORDER BY b.created_at LIMIT %(limit)s::int FOR UPDATE OF b SKIP LOCKED
)
DELETE FROM {schema}.batches WHERE id = ANY (ARRAY(SELECT id FROM old)) RETURNING id
