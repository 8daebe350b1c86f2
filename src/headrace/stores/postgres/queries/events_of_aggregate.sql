-- Read events of the log of one aggregate, as they were inserted, behind one of them.
-- OFFSET 0 keeps the planner from walking the whole log in its order.
-- Locks: none. Index: events_aggregate, primary key.
SELECT e.id, e.type, e.aggregate_type, e.aggregate_id, e.payload, e.correlation_id, e.causation_id, e.occurred_at,
  e.schema_version, e.retries
FROM (
  SELECT * FROM {schema}.events
  WHERE aggregate_id = %(aggregate_id)s::text
    AND position > coalesce((SELECT a.position FROM {schema}.events AS a WHERE a.id = %(after)s::uuid), 0)
  OFFSET 0
) AS e
ORDER BY e.position LIMIT %(limit)s::int
