-- Remove events of the log that happened longer ago, oldest first, but for those that no bus has yet. OFFSET 0 keeps the
-- planner from reading the whole outbox for that.
-- Locks: the removed rows, skipping locked ones. Index: events_age, event_outbox_event, primary key.
DELETE FROM {schema}.events WHERE id = ANY(ARRAY(
  SELECT e.id FROM {schema}.events AS e
  WHERE e.occurred_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
    AND NOT EXISTS (SELECT FROM {schema}.event_outbox AS o WHERE o.event_id = e.id OFFSET 0)
  ORDER BY e.occurred_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))
RETURNING id
