-- List what is to be done for a user, in order.
-- Locks: none. Index: flushes_unfinished.
SELECT id, user_id, blob_ids, tokens, number, state, reason, created_at, round, error
FROM {schema}.flushes WHERE user_id = %(user_id)s::text AND state IN ('waiting', 'processing') ORDER BY number
