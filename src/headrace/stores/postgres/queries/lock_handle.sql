-- Hold a handle, for its end by hand.
-- Locks: the row. Index: primary key.
SELECT h.* FROM {schema}.flow_resume_handles AS h
WHERE h.correlation_id = %(correlation_id)s AND h.state <> 'early'
FOR UPDATE
