-- Let one migrating process at a time pass; the rest of them find nothing left to do.
-- Locks: an advisory lock of the transaction, named after the schema. Index: none.
SELECT pg_advisory_xact_lock(hashtextextended('headrace migrate ' || %(name)s, 0))
