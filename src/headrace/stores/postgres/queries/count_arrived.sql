-- Count what has come of what a handle expects, each event once; run after hold_handle, in a snapshot of its own, so that it
-- counts what was kept while that waited. The rule is that of `count_arrived` in the model.
-- Locks: the row, held before. Index: primary keys.
UPDATE {schema}.flow_resume_handles AS h SET arrived = (
  SELECT count(DISTINCT e.event_id) FROM {schema}.resume_events AS e
  WHERE e.correlation_id = h.correlation_id AND NOT (e.dead AND EXISTS (
    SELECT FROM {schema}.resume_events AS c WHERE c.correlation_id = h.correlation_id AND c.cause = e.event_id)))
WHERE h.correlation_id = %(correlation_id)s
RETURNING h.*
