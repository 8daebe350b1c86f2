-- Read which shape the tables have, and what tells of changes.
-- Locks: none. Index: none, one row.
SELECT version, changes FROM {schema}.about
