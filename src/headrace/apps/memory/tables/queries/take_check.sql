-- Take the note that the buffer of a user is to be looked at; changes from now on are noted anew.
-- Locks: the row. Index: primary key.
DELETE FROM {schema}.pending_checks WHERE user_id = %(user_id)s::text RETURNING user_id
