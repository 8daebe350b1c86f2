-- Remember the name of the round that a batch is in, as long as the batch lives: ROUND:FIRST ORDINAL stands as the body.
-- Locks: the new row; the caller holds the batch by lock_batch. Index: primary keys.
INSERT INTO {schema}.idempotency_keys (scope, key, id, body_hash)
SELECT 'round:' || b.id, %(key)s, b.id, b.round || ':' || %(first)s::int
FROM {schema}.batches AS b WHERE b.id = %(batch_id)s
