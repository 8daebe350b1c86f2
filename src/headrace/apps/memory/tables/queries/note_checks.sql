-- Note that buffers of users are to be looked at; return the users who had no such note.
-- Locks: the new rows, by user. Index: primary key.
INSERT INTO {schema}.pending_checks (user_id) SELECT DISTINCT u.id FROM unnest(%(user_ids)s::text[]) AS u (id) ORDER BY u.id
ON CONFLICT DO NOTHING RETURNING user_id
