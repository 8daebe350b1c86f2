-- Note that buffers of users ($1) are to be looked at; a row for each that had no such note, or an old one: then the look
-- that it stands for was given up.
-- Locks: the rows, in the order of users. Index: primary key.
INSERT INTO {schema}.pending_checks AS p (user_id)
SELECT u.id FROM unnest($1::text[]) AS u (id) ORDER BY u.id COLLATE "C"
ON CONFLICT (user_id) DO UPDATE SET created_at = now() WHERE p.created_at < now() - interval '5 minutes'
RETURNING p.user_id
