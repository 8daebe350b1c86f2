-- List the newest gists of a user.
-- Locks: none. Index: user_event_gists_user.
SELECT event_id, number, content, created_at FROM {schema}.user_event_gists
WHERE user_id = %(user_id)s::text
ORDER BY created_at DESC, event_id, number LIMIT %(limit)s::int
