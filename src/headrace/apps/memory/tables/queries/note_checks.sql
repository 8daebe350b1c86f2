-- Note that buffers of users are to be looked at; return the users who had no such note, or an old one: then the look
-- that it stands for was given up.
-- Locks: the rows, in the order of users. Index: primary key.
INSERT INTO {schema}.pending_checks AS p (user_id)
SELECT DISTINCT u.id COLLATE "C" AS id FROM unnest(%(user_ids)s::text[]) AS u (id) ORDER BY id
ON CONFLICT (user_id) DO UPDATE SET created_at = now() WHERE p.created_at < now() - interval '5 minutes'
RETURNING p.user_id
