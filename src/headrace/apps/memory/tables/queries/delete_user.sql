-- Delete a user and all that is known of it; return its id if it was there.
-- Locks: the user and its flushes, which the caller holds by lock_user and lock_flushes; then all rows of it. Index:
-- primary key, and the index by user of each table.
WITH unchecked AS (DELETE FROM {schema}.pending_checks WHERE user_id = %(user_id)s::text)
DELETE FROM {schema}.users WHERE id = %(user_id)s::text RETURNING id
