-- One batch.
-- Locks: none. Index: primary key.
SELECT id, key, task, queue, state, outcome, total, round, max_failed, created_at, sealed_at, closed_at,
  paused_at, paused_reason
FROM {schema}.batches WHERE id = %(batch_id)s
