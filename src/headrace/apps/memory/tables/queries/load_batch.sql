-- Read the flushes of a batch that have not ended, in its order, with their blobs in theirs.
-- Locks: none. Index: primary keys.
SELECT f.id, f.user_id, f.blob_ids, f.tokens, f.number, f.state, f.reason, f.created_at, f.round, f.error,
  g.id AS blob_id, g.blob_type, g.blob_data::text AS blob_data, g.token_size, g.created_at AS blob_created_at
FROM {schema}.batches AS b
CROSS JOIN LATERAL unnest(b.flush_ids) WITH ORDINALITY AS p (flush_id, place)
JOIN {schema}.flushes AS f ON f.id = p.flush_id AND f.state IN ('waiting', 'processing')
CROSS JOIN LATERAL unnest(f.blob_ids) WITH ORDINALITY AS q (blob_id, place)
LEFT JOIN LATERAL (
  SELECT * FROM {schema}.general_blobs WHERE id = q.blob_id AND user_id = f.user_id LIMIT 1
) AS g ON true
WHERE b.id = %(batch_id)s::uuid ORDER BY p.place, q.place
