-- Hold the flushes of a user, who is held by lock_user, before they are deleted: in the order in which whoever works on
-- one takes it and its rows.
-- Locks: the flushes by id. Index: flushes_number.
SELECT id FROM {schema}.flushes WHERE user_id = %(user_id)s::text ORDER BY id FOR UPDATE
