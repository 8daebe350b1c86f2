-- Make the schema of a project; only run when it is not there, so that users without the right can use one.
-- Locks: of the catalogue. Index: none.
CREATE SCHEMA IF NOT EXISTS {schema}
