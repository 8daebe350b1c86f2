-- What the idempotency keys stand for that were taken before; run after insert_keys, in a snapshot of its own.
-- Locks: none. Index: primary key.
SELECT known.scope, known.key, known.id, known.body_hash
FROM unnest(%(scopes)s::text[], %(keys)s::text[]) AS k (scope, key)
JOIN {schema}.idempotency_keys AS known ON known.scope = k.scope AND known.key = k.key
