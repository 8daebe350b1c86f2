-- Name the blobs given that are there with other content. Of one whose blob was deleted when it was done, what its row
-- says is compared.
-- Locks: none. Index: primary key, buffer_zone_blob_id_key.
SELECT g.id
FROM unnest(%(ids)s::uuid[], %(user_ids)s::text[], %(types)s::text[], %(data)s::text[], %(tokens)s::int[])
  AS g (id, user_id, blob_type, blob_data, token_size)
LEFT JOIN LATERAL (SELECT * FROM {schema}.general_blobs WHERE id = g.id LIMIT 1) AS b ON true
LEFT JOIN LATERAL (SELECT * FROM {schema}.buffer_zone WHERE blob_id = g.id LIMIT 1) AS z ON true
WHERE (b.user_id, b.blob_type, b.token_size, b.blob_data) <> (g.user_id, g.blob_type, g.token_size, g.blob_data::jsonb)
  OR (z.user_id, z.blob_type, z.token_size) <> (g.user_id, g.blob_type, g.token_size)
