-- List flushes of a user, newest first; of one state, or all.
-- Locks: none. Index: flushes_number.
SELECT id, user_id, blob_ids, tokens, number, state, reason, created_at, round, error
FROM {schema}.flushes WHERE user_id = %(user_id)s::text AND (%(state)s::text IS NULL OR state = %(state)s::text)
ORDER BY number DESC LIMIT %(limit)s::int
