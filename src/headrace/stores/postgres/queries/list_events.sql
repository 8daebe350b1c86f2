-- Read events of the log as they were inserted, behind one of them.
-- Locks: none. Index: events_position_key, primary key.
SELECT id, type, aggregate_type, aggregate_id, payload, correlation_id, causation_id, occurred_at, schema_version, retries
FROM {schema}.events
WHERE position > coalesce((SELECT a.position FROM {schema}.events AS a WHERE a.id = %(after)s::uuid), 0)
ORDER BY position LIMIT %(limit)s::int
