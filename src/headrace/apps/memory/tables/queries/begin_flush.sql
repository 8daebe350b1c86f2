-- Hold a flush under a new fence and read its blobs, in order; nothing when it has ended, or when another of the user
-- is worked on or comes before it; what was begun goes on though an earlier one that failed is tried again. Two flushes
-- of a user begun at the same moment: flushes_processing refuses one.
-- Locks: the flush, then its rows. Index: primary key, flushes_unfinished, buffer_zone_user.
WITH begun AS (
  UPDATE {schema}.flushes AS f
  SET state = 'processing', fence = f.fence + 1, lease_until = now() + %(lease)s::interval,
    begun_at = coalesce(f.begun_at, now())
  WHERE f.id = %(flush_id)s::uuid AND f.state IN ('waiting', 'processing') AND NOT EXISTS (
    SELECT FROM {schema}.flushes AS o
    WHERE o.user_id = f.user_id AND o.state IN ('waiting', 'processing') AND o.id <> f.id
      AND (o.state = 'processing' OR (o.number < f.number AND f.state = 'waiting'))
  )
  RETURNING f.id, f.user_id, f.blob_ids, f.tokens, f.number, f.state, f.reason, f.created_at, f.round, f.error, f.fence
), worked AS (
  -- Not only idle ones: what was idle a moment ago may be seen as it was before.
  UPDATE {schema}.buffer_zone AS z SET status = 'processing', updated_at = now()
  FROM begun WHERE z.user_id = begun.user_id AND z.flush_id = begun.id AND z.status <> 'done'
)
SELECT begun.*, b.id AS blob_id, b.blob_type, b.blob_data::text AS blob_data, b.token_size,
  b.created_at AS blob_created_at
FROM begun CROSS JOIN LATERAL unnest(begun.blob_ids) WITH ORDINALITY AS p (blob_id, place)
LEFT JOIN LATERAL (
  SELECT * FROM {schema}.general_blobs WHERE id = p.blob_id AND user_id = begun.user_id LIMIT 1
) AS b ON true
ORDER BY p.place
