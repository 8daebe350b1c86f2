-- The paid answer under a key.
-- Locks: none. Index: primary key.
SELECT answer FROM {schema}.answers WHERE key = %(key)s
