-- Read users.
-- Locks: none. Index: primary key.
SELECT u.* FROM unnest(%(user_ids)s::text[]) AS g (id)
CROSS JOIN LATERAL (SELECT id, level, language, created_at FROM {schema}.users WHERE id = g.id LIMIT 1) AS u
