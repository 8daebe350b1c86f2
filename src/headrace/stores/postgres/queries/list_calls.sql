-- Model calls of the ledger, newest first: those in a state, of a pool, or all.
-- Locks: none. Index: calls_opened, or calls_orphaned.
SELECT c.* FROM {schema}.calls AS c
WHERE (%(state)s::text IS NULL OR c.state = %(state)s::text) AND (%(pool)s::text IS NULL OR c.pool = %(pool)s::text)
ORDER BY c.opened_at DESC, c.id DESC LIMIT %(limit)s::bigint
