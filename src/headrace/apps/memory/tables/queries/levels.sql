-- Read the levels of users.
-- Locks: none. Index: primary key.
SELECT u.id, u.level FROM unnest(%(user_ids)s::text[]) AS g (id)
CROSS JOIN LATERAL (SELECT id, level FROM {schema}.users WHERE id = g.id LIMIT 1) AS u
