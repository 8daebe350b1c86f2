-- End a pause. What is held of it is let go by let_go_jobs; the leader goes on with that for as long as anything is held.
-- Locks: the batch row. Index: primary key.
UPDATE {schema}.batches SET paused_at = NULL, paused_reason = NULL WHERE id = %(batch_id)s AND paused_at IS NOT NULL
