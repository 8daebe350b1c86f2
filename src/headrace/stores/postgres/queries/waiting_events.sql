-- Read the front of the outbox: what waits, in the order of its inserts, with its events; but of some topics nothing.
-- Locks: none. Index: event_outbox_waiting, then the primary key of the log.
SELECT o.position, o.event_id, o.topic, o.key, o.raw, o.message, o.headers, e.type, e.aggregate_type, e.aggregate_id,
  e.payload, e.correlation_id, e.causation_id, e.occurred_at, e.schema_version, e.retries
FROM (SELECT * FROM {schema}.event_outbox WHERE state = 'waiting' AND topic <> ALL(%(without)s::text[])
    ORDER BY position LIMIT %(limit)s::int) AS o
  LEFT JOIN {schema}.events AS e ON e.id = o.event_id
ORDER BY o.position
