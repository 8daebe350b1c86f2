-- Insert blobs, their rows of the buffer and the users that are new; return the ids of those that were not there. Blobs
-- without a time are said now, in the order given.
-- Locks: rows and blobs against the same ones, then the users against their deletion alone, and new ones; each by id.
-- Who deletes a user waits for none of these rows, for it does not see them. Index: primary keys.
WITH given AS MATERIALIZED (
  SELECT g.id, g.user_id, g.blob_type, g.blob_data::jsonb AS blob_data, g.token_size, g.buffered,
    coalesce(g.created_at, now() + g.place * interval '1 microsecond') AS created_at
  FROM unnest(%(ids)s::uuid[], %(user_ids)s::text[], %(types)s::text[], %(data)s::text[], %(tokens)s::int[],
    %(created_at)s::timestamptz[], %(buffered)s::bool[])
    WITH ORDINALITY AS g (id, user_id, blob_type, blob_data, token_size, created_at, buffered, place)
), known AS MATERIALIZED (
  SELECT u.id FROM (SELECT DISTINCT user_id FROM given ORDER BY user_id) AS g
  CROSS JOIN LATERAL (SELECT id FROM {schema}.users WHERE id = g.user_id LIMIT 1 FOR KEY SHARE) AS u
), made AS (
  -- Known ones are not tried: for a row that is being changed, ON CONFLICT would wait.
  INSERT INTO {schema}.users (id)
  SELECT DISTINCT user_id FROM given WHERE user_id NOT IN (SELECT id FROM known) ORDER BY user_id
  ON CONFLICT DO NOTHING
), row_inserted AS (
  INSERT INTO {schema}.buffer_zone (blob_id, created_at, token_size, user_id, blob_type)
  SELECT id, created_at, token_size, user_id, blob_type FROM given WHERE buffered ORDER BY id
  ON CONFLICT (blob_id) DO NOTHING RETURNING blob_id
), inserted AS (
  INSERT INTO {schema}.general_blobs (id, created_at, token_size, user_id, blob_type, blob_data)
  SELECT id, created_at, token_size, user_id, blob_type, blob_data FROM given
  WHERE NOT buffered OR id IN (SELECT blob_id FROM row_inserted) ORDER BY id
  ON CONFLICT (id) DO NOTHING RETURNING id
)
SELECT id FROM inserted
