-- The batch a key stands for.
-- Locks: none. Index: primary key.
SELECT id, body_hash FROM {schema}.idempotency_keys WHERE scope = %(scope)s AND key = %(key)s
