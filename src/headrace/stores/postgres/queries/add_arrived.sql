-- Count a result that was just kept for a handle, one more than before; no row: dead letters are kept as well, so that all
-- is to be counted anew. Run after note_event.
-- Locks: the row, held before. Index: primary key; resume_events_dead.
UPDATE {schema}.flow_resume_handles AS h SET arrived = h.arrived + 1
WHERE h.correlation_id = %(correlation_id)s
  AND NOT EXISTS (SELECT FROM {schema}.resume_events AS e WHERE e.correlation_id = %(correlation_id)s AND e.dead)
RETURNING h.*
