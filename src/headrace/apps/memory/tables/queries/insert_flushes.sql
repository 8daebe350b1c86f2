-- Bind rows to flushes, which are numbered from the user's last one on; return the flushes in their order.
-- Locks: the user and its rows, which the caller holds by take_idle_rows. Index: primary key, buffer_zone_user.
WITH placed AS MATERIALIZED (
  SELECT p.blob_id, p.flush_id, p.place
  FROM unnest(%(blob_ids)s::uuid[], %(flush_ids)s::uuid[]) WITH ORDINALITY AS p (blob_id, flush_id, place)
), bound AS (
  UPDATE {schema}.buffer_zone AS z SET flush_id = p.flush_id, updated_at = now()
  FROM placed AS p
  WHERE z.user_id = %(user_id)s::text AND z.flush_id IS NULL AND z.blob_id = p.blob_id RETURNING z.blob_id, z.token_size
), made AS MATERIALIZED (
  SELECT p.flush_id, array_agg(p.blob_id ORDER BY p.place) AS blob_ids, sum(b.token_size) AS tokens,
    %(last_flush)s::int + row_number() OVER (ORDER BY min(p.place)) AS number
  FROM placed AS p JOIN bound AS b ON b.blob_id = p.blob_id GROUP BY p.flush_id
), numbered AS (
  UPDATE {schema}.users SET last_flush = (SELECT max(number) FROM made) WHERE id = %(user_id)s::text
)
INSERT INTO {schema}.flushes (id, user_id, blob_ids, tokens, number, reason)
SELECT flush_id, %(user_id)s::text, blob_ids, tokens, number, %(reason)s::text FROM made ORDER BY number
RETURNING id, user_id, blob_ids, tokens, number, state, reason, created_at, round, error
