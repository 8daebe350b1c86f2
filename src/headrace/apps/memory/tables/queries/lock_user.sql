-- Hold a user before it is deleted: from now on nothing is made of it.
-- Locks: the user. Index: primary key.
SELECT id FROM {schema}.users WHERE id = %(user_id)s::text FOR UPDATE
