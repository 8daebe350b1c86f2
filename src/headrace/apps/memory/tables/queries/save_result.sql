-- Keep what the model made of a flush, for the one who holds it; the first stands, and is returned.
-- Locks: the flush. Index: primary key.
UPDATE {schema}.flushes SET result = coalesce(result, %(result)s::text::jsonb)
WHERE id = %(flush_id)s::uuid AND fence = %(fence)s::int AND state = 'processing' RETURNING result::text AS result
