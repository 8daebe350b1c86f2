-- Sum up what waits in the buffer of a user; times are those at which it came in.
-- Locks: none. Index: buffer_zone_user, primary key.
SELECT count(*) AS rows, coalesce(sum(token_size), 0) AS tokens, min(updated_at) AS oldest_at,
  max(updated_at) AS newest_at, coalesce((SELECT level FROM {schema}.users WHERE id = %(user_id)s::text), 0) AS level
FROM {schema}.buffer_zone WHERE user_id = %(user_id)s::text AND flush_id IS NULL
