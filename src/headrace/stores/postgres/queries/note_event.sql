-- Keep an event of a correlation id; no row: it is known. Run after hold_handle.
-- Locks: the new row, under that of the handle. Index: primary key.
INSERT INTO {schema}.resume_events (correlation_id, event_id, dead, agent, type, cause, noted_at, noted)
VALUES (%(correlation_id)s, %(event_id)s, %(dead)s, %(agent)s, %(type)s, %(cause)s,
  coalesce(%(now)s::timestamptz, clock_timestamp()), %(noted)s::text::json)
ON CONFLICT (correlation_id, event_id, dead, agent) DO NOTHING
RETURNING seq
