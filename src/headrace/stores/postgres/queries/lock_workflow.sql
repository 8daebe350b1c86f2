-- Let one writer of a workflow pass at a time: versions count on, and what allows starts is the same for all of them.
-- Locks: an advisory lock of the transaction, named after the workflow. Index: none.
SELECT pg_advisory_xact_lock(hashtextextended('{schema} workflow ' || %(name)s, 0))
