-- Note that a search which began at a time and went through the whole hot table took back what ended sessions ran. One
-- that began late enough is the last: claims that saw the session alive may commit after its end.
-- Locks: the marked session rows. Index: none, one row per worker start of a day.
UPDATE {schema}.sessions AS s
SET searched_at = %(began_at)s::timestamptz, swept = s.expires_at + %(after)s::interval <= %(began_at)s::timestamptz
WHERE NOT s.swept AND s.expires_at <= %(began_at)s::timestamptz
