-- The number of the newest entry of a feed; no row: there is none.
-- Locks: none. Index: feeds_name.
SELECT last_seq FROM {schema}.feeds WHERE name = %(feed)s
