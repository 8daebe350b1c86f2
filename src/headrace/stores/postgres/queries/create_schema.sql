-- Make the schema that holds everything; the first step of migrating.
-- Locks: the catalogue entry of the schema. Index: none.
CREATE SCHEMA IF NOT EXISTS {schema}
