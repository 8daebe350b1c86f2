-- The events that are kept for a handle, each once, as they came; an event itself rather than its dead letter.
-- Locks: none. Index: primary keys.
SELECT n.noted FROM (
  SELECT DISTINCT ON (e.event_id) e.seq, e.noted
  FROM {schema}.flow_resume_handles AS h JOIN {schema}.resume_events AS e ON e.correlation_id = h.correlation_id
  WHERE h.correlation_id = %(correlation_id)s AND h.state <> 'early'
  ORDER BY e.event_id, e.dead, e.seq) AS n
ORDER BY n.seq
