-- Keep the summary of a flush that has not ended; the first stands, and is returned.
-- Locks: the flush. Index: primary key.
UPDATE {schema}.flushes SET summary = coalesce(summary, %(summary)s::text)
WHERE id = %(flush_id)s::uuid AND state IN ('waiting', 'processing') RETURNING summary
