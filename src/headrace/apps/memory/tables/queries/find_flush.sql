-- Read a flush, its fence and its result.
-- Locks: none. Index: primary key.
SELECT id, user_id, blob_ids, tokens, number, state, reason, created_at, round, error, fence, summary,
  result::text AS result, EXISTS (SELECT FROM {schema}.user_events AS e WHERE e.id = f.id) AS has_event
FROM {schema}.flushes AS f WHERE id = %(flush_id)s::uuid
