-- The named rounds of a batch in their order, each with its first ordinal.
-- Locks: none; the caller holds the batch by lock_batch. Index: primary key.
SELECT key, split_part(body_hash, ':', 2)::int AS first FROM {schema}.idempotency_keys
WHERE scope = 'round:' || %(batch_id)s::uuid
ORDER BY split_part(body_hash, ':', 1)::int
