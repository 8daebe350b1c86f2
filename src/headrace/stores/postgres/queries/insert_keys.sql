-- Claim idempotency keys for new jobs or runs; a key that expired is free again. Returns the keys that are ours now.
-- A key that another open transaction is inserting makes this wait for its end (bounded by lock_timeout).
-- Locks: the key rows, in the order given (the caller sorts them). Index: primary key.
INSERT INTO {schema}.idempotency_keys AS known (scope, key, id, body_hash, expires_at)
SELECT k.scope, k.key, k.id, k.body_hash, t.now + %(lifetime)s::interval
FROM unnest(%(scopes)s::text[], %(keys)s::text[], %(ids)s::uuid[], %(hashes)s::text[])
    WITH ORDINALITY AS k (scope, key, id, body_hash, place),
  (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
ORDER BY k.place
ON CONFLICT (scope, key) DO UPDATE
  SET id = excluded.id, body_hash = excluded.body_hash, expires_at = excluded.expires_at
  WHERE known.expires_at <= coalesce(%(now)s::timestamptz, now())
RETURNING known.scope, known.key
