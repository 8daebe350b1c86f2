-- Let one process at a time make or change the tables of a project; ends with the transaction.
-- Locks: one advisory lock, held to the end of the transaction. Index: none.
SELECT pg_advisory_xact_lock(hashtextextended('headrace memory ' || %(schema)s::text, 0))
