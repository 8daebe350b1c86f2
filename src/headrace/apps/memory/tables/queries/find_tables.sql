-- Say whether the schema is there, and its tables.
-- Locks: none. Index: of the catalogue.
SELECT to_regnamespace(%(schema)s::text) IS NOT NULL AS has_schema,
  to_regclass(%(schema)s::text || '.about') IS NOT NULL AS has_tables
