-- The batch that was submitted under a key.
-- Locks: none. Index: primary keys of idempotency_keys and batches.
SELECT b.id, b.key, b.task, b.queue, b.state, b.outcome, b.total, b.round, b.max_failed, b.created_at, b.sealed_at,
  b.closed_at, b.paused_at, b.paused_reason
FROM {schema}.idempotency_keys AS k JOIN {schema}.batches AS b ON b.id = k.id
WHERE k.scope = %(scope)s AND k.key = %(key)s
