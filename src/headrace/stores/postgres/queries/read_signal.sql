-- The signal of a key; no row: it has not come.
-- Locks: none. Index: primary key.
SELECT payload FROM {schema}.signals WHERE key = %(key)s AND payload IS NOT NULL
