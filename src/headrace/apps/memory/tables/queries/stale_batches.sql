-- List batches made some time ago of which a flush still waits for its summary, oldest first: who was to ask for it
-- may be gone.
-- Locks: none. Index: flushes_batched, primary key of batches.
SELECT b.id FROM {schema}.batches AS b
WHERE b.created_at <= now() - %(after)s::interval AND b.id IN (
  SELECT f.batch_id FROM {schema}.flushes AS f
  WHERE f.state = 'waiting' AND f.batch_id IS NOT NULL AND f.summary IS NULL AND f.fence = 0 AND NOT f.alone
)
ORDER BY b.created_at, b.id LIMIT %(limit)s::int
