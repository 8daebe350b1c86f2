-- Move the lease of a flush on, for the one who holds it.
-- Locks: the flush. Index: primary key.
UPDATE {schema}.flushes SET lease_until = now() + %(lease)s::interval
WHERE id = %(flush_id)s::uuid AND fence = %(fence)s::int AND state = 'processing' RETURNING id
