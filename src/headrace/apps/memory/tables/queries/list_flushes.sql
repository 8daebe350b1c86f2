-- List flushes of all users, newest first; of one state, or all.
-- Locks: none. Index: flushes_created.
SELECT id, user_id, blob_ids, tokens, number, state, reason, created_at, round, error
FROM {schema}.flushes WHERE %(state)s::text IS NULL OR state = %(state)s::text
ORDER BY created_at DESC, id DESC LIMIT %(limit)s::int
