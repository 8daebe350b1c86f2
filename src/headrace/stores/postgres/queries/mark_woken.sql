-- Note that the target of a handle was woken.
-- Locks: the row. Index: primary key.
UPDATE {schema}.flow_resume_handles AS h SET wake_at = NULL
WHERE h.correlation_id = %(correlation_id)s AND h.wake_at IS NOT NULL
