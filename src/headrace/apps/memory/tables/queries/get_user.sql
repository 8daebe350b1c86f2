-- Read a user.
-- Locks: none. Index: primary key.
SELECT id, level, language, created_at FROM {schema}.users WHERE id = %(user_id)s::text
