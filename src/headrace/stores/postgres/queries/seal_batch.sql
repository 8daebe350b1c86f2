-- Fix the total of a batch; the caller holds it by lock_batch.
-- Locks: the batch row. Index: primary key.
UPDATE {schema}.batches
SET state = 'sealed', total = %(total)s::int, sealed_at = coalesce(%(now)s::timestamptz, now())
WHERE id = %(batch_id)s AND state IN ('open', 'abandoned')
