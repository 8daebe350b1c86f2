-- The applied migrations, oldest first.
-- Locks: none. Index: the whole table, a few rows.
SELECT version, name FROM {schema}.migrations ORDER BY version
