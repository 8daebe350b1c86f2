-- Name the blobs given that are there with other content. Of one whose blob was deleted when it was done, what its row
-- says is compared.
-- Locks: none. Index: primary key, buffer_zone_blob_id_key.
SELECT g.id
FROM unnest(%(ids)s::uuid[], %(user_ids)s::text[], %(types)s::text[], %(data)s::text[], %(tokens)s::int[])
  AS g (id, user_id, blob_type, blob_data, token_size)
LEFT JOIN {schema}.general_blobs AS b ON b.id = g.id
LEFT JOIN {schema}.buffer_zone AS z ON z.blob_id = g.id
WHERE (b.user_id, b.blob_type, b.token_size, b.blob_data) <> (g.user_id, g.blob_type, g.token_size, g.blob_data::jsonb)
  OR (z.user_id, z.blob_type, z.token_size) <> (g.user_id, g.blob_type, g.token_size)
