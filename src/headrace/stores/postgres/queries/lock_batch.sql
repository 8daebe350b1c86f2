-- Hold a batch and read it; what was appended before is counted afterwards, in a statement of its own.
-- Locks: the batch row, against appending, closing and other rounds. Index: primary key.
SELECT state, total, round FROM {schema}.batches WHERE id = %(batch_id)s FOR UPDATE
