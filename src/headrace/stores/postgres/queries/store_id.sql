-- The id of this schema.
-- Locks: none. Index: primary key.
SELECT store_id FROM {schema}.migrations WHERE version = 1
