-- Pause a batch that is not closed or being cancelled; one that is paused already gets the new reason.
-- Locks: the batch row, which the caller holds by lock_batch. Index: primary key.
UPDATE {schema}.batches
SET paused_at = coalesce(paused_at, %(now)s::timestamptz, now()), paused_reason = %(reason)s::text
WHERE id = %(batch_id)s
