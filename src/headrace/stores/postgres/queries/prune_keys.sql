-- Remove idempotency keys of single jobs that expired. They are looked for once, as in prune_inbox.
-- Locks: the removed rows, skipping locked ones. Index: idempotency_keys_expiry, primary key.
WITH old AS MATERIALIZED (
  SELECT e.scope, e.key FROM {schema}.idempotency_keys AS e
  WHERE e.expires_at <= coalesce(%(now)s::timestamptz, now())
  ORDER BY e.expires_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
)
DELETE FROM {schema}.idempotency_keys AS k USING old
WHERE k.scope = old.scope AND k.key = old.key
RETURNING k.key
