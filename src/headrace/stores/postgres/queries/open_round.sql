-- Open the next round of a batch: open for more items, or sealed for retries of what failed. `changes`
-- tells a closer that counted before that its count is stale. The caller holds the batch by lock_batch.
-- Locks: the batch row. Index: primary key.
UPDATE {schema}.batches
SET state = %(state)s, round = round + 1, changes = changes + 1, outcome = NULL, closed_at = NULL,
  total = CASE WHEN %(state)s = 'open' THEN NULL ELSE total END, opened_at = coalesce(%(now)s::timestamptz, now())
WHERE id = %(batch_id)s
