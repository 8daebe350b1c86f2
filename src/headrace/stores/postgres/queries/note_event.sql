-- Keep an event of a correlation id and return its handle, which it may end: see the function in schema.sql. No row: there
-- is no handle yet.
-- Locks: the row of the correlation id, which whoever comes first makes; then those of send_signal.
-- Index: primary keys, resume_events_dead.
SELECT (n.handle).*, n.queues FROM {schema}.note_event(%(correlation_id)s::text, %(event_id)s::text, %(dead)s::boolean,
  %(agent)s::text, %(type)s::text, %(cause)s::text, %(noted)s::text::json, %(head_starts)s::interval[],
  %(now)s::timestamptz) AS n
