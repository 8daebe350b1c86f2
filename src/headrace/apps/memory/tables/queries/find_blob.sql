-- Read a blob.
-- Locks: none. Index: primary key.
SELECT id AS blob_id, user_id, blob_type, blob_data::text AS blob_data, token_size, created_at AS blob_created_at
FROM {schema}.general_blobs WHERE id = %(blob_id)s::uuid
