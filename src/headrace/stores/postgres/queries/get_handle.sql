-- A handle; no row: there is none, or only early events.
-- Locks: none. Index: primary key.
SELECT h.* FROM {schema}.flow_resume_handles AS h
WHERE h.correlation_id = %(correlation_id)s AND h.state <> 'early'
