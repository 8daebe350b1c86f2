-- Write the event of a flush with its gists, and end its rows and the flush, for the one who holds it; nothing happens
-- and nothing is returned under another fence. Blobs are deleted where they are not kept.
-- Locks: the user, the flush, its rows, its blobs. Index: primary keys, buffer_zone_user.
WITH person AS MATERIALIZED (
  SELECT id FROM {schema}.users WHERE id = %(user_id)s::text FOR NO KEY UPDATE
), held AS MATERIALIZED (
  SELECT f.id, f.user_id, f.blob_ids FROM person CROSS JOIN {schema}.flushes AS f
  WHERE f.id = %(flush_id)s::uuid AND f.user_id = person.id AND f.fence = %(fence)s::int AND f.state = 'processing'
  FOR UPDATE OF f
), ended AS (
  UPDATE {schema}.flushes AS f
  SET state = 'done', ended_at = now(), lease_until = NULL, error = NULL, result = %(result)s::text::jsonb
  FROM held WHERE f.id = held.id
), rows AS (
  UPDATE {schema}.buffer_zone AS z SET status = 'done', updated_at = now()
  FROM held WHERE z.user_id = held.user_id AND z.flush_id = held.id
), dropped AS (
  DELETE FROM {schema}.general_blobs AS b USING held WHERE NOT %(keep_blobs)s::bool AND b.id = ANY (held.blob_ids)
    AND b.user_id = held.user_id
), event AS (
  INSERT INTO {schema}.user_events (id, user_id, event_tip, event_tags, profile_delta)
  SELECT held.id, held.user_id, %(event_tip)s::text, %(event_tags)s::text::jsonb, %(profile_delta)s::text::jsonb
  FROM held WHERE %(has_event)s::bool
), gists AS (
  INSERT INTO {schema}.user_event_gists (event_id, number, user_id, content, words)
  SELECT held.id, g.place - 1, held.user_id, g.content,
    to_tsvector('english', g.words) || to_tsvector('simple', g.pieces)
  FROM held CROSS JOIN unnest(%(gists)s::text[], %(words)s::text[], %(pieces)s::text[])
    WITH ORDINALITY AS g (content, words, pieces, place)
  WHERE %(has_event)s::bool
)
SELECT cardinality(blob_ids) AS processed_count FROM held
