-- Let one member of a group at a time look who has what and take its part.
-- Locks: an advisory lock of the transaction, named after the group. Index: none.
SELECT pg_advisory_xact_lock(hashtextextended('{schema} log group ' || %(name)s, 0))
