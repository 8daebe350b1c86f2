-- Take the rows in the buffer of a user to bind them to flushes, in the order of time. One at a time does so per user,
-- so that flushes are numbered in that order; inserts go on meanwhile.
-- Locks: the user, then its rows in the buffer, skipping those that another program holds. Index: primary key,
-- buffer_zone_user.
WITH person AS MATERIALIZED (
  SELECT id, last_flush FROM {schema}.users WHERE id = %(user_id)s::text FOR NO KEY UPDATE
)
SELECT person.last_flush, z.blob_id, z.token_size
FROM person CROSS JOIN {schema}.buffer_zone AS z
WHERE z.user_id = %(user_id)s::text AND z.flush_id IS NULL
ORDER BY z.created_at, z.blob_id FOR UPDATE OF z SKIP LOCKED
