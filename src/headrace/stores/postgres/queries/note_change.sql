-- Tell closers of a batch that a live job was added to it; the caller holds it by lock_batch.
-- Locks: the batch row. Index: primary key.
UPDATE {schema}.batches SET changes = changes + 1 WHERE id = %(batch_id)s
