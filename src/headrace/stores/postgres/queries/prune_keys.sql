-- Remove idempotency keys of single jobs that expired.
-- Locks: the removed rows, skipping locked ones. Index: idempotency_keys_expiry, primary key.
DELETE FROM {schema}.idempotency_keys AS k
USING (SELECT e.scope, e.key FROM {schema}.idempotency_keys AS e
  WHERE e.expires_at <= coalesce(%(now)s::timestamptz, now())
  ORDER BY e.expires_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED) AS old
WHERE k.scope = old.scope AND k.key = old.key
RETURNING k.key
