-- End a pause. The leader looks for a time after this for jobs that a statement held which began before.
-- Locks: the batch row. Index: primary key.
UPDATE {schema}.batches
SET paused_at = NULL, resumed_at = coalesce(%(now)s::timestamptz, now()), paused_reason = NULL
WHERE id = %(batch_id)s AND paused_at IS NOT NULL
