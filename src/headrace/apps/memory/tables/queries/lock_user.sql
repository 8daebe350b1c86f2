-- Hold a user and its flushes before it is deleted: in the order in which whoever works on one takes them.
-- Locks: the user, then its flushes by id. Index: primary key, flushes_number.
WITH person AS MATERIALIZED (SELECT id FROM {schema}.users WHERE id = %(user_id)s::text FOR UPDATE)
SELECT f.id FROM person JOIN {schema}.flushes AS f ON f.user_id = person.id ORDER BY f.id FOR UPDATE OF f
