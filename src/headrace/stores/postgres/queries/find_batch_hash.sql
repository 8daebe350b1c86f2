-- What a batch was submitted with.
-- Locks: none. Index: primary key.
SELECT id, body_hash FROM {schema}.batches WHERE id = %(id)s
