-- How many items a batch holds.
-- Locks: none. Index: primary key.
SELECT coalesce(sum(count), 0)::int AS appended FROM {schema}.batch_slices WHERE batch_id = %(batch_id)s
