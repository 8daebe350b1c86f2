-- Say whether the table of applied migrations exists; an empty database has none.
-- Locks: none. Index: the catalogue's.
SELECT to_regclass(%(name)s) IS NOT NULL AS present
