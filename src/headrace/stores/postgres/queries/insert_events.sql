-- Put events and messages into the outbox, the events into their log as well, once per id: what is known is left alone.
-- JSON comes as text: on the caller's own connection a codec for json may be set. A raw one has no event, only a message.
-- Locks: the new rows; an id that another open transaction inserts is waited for. Index: primary key of the log,
-- event_outbox_event.
WITH given AS MATERIALIZED (
  SELECT * FROM unnest(%(ids)s::uuid[], %(topics)s::text[], %(keys)s::text[], %(raws)s::boolean[], %(types)s::text[],
      %(aggregate_types)s::text[], %(aggregate_ids)s::text[], %(correlation_ids)s::text[], %(causation_ids)s::text[],
      %(times)s::timestamptz[], %(schema_versions)s::int[], %(retries)s::int[], %(payloads)s::text[],
      %(messages)s::bytea[], %(headers)s::text[]) WITH ORDINALITY
    AS g (id, topic, key, raw, type, aggregate_type, aggregate_id, correlation_id, causation_id, time, schema_version,
      retries, payload, message, headers, place)
), fresh AS (
  INSERT INTO {schema}.events
    (id, occurred_at, schema_version, retries, type, aggregate_type, aggregate_id, correlation_id, causation_id, payload)
  SELECT g.id, coalesce(g.time, %(now)s::timestamptz, now()), g.schema_version, g.retries, g.type, g.aggregate_type,
    g.aggregate_id, g.correlation_id, g.causation_id, g.payload::json
  FROM given AS g WHERE NOT g.raw
  ORDER BY g.place
  ON CONFLICT (id) DO NOTHING
  RETURNING id
)
INSERT INTO {schema}.event_outbox (event_id, created_at, raw, state, topic, key, headers, message)
SELECT g.id, coalesce(%(now)s::timestamptz, now()), g.raw, 'waiting', g.topic, g.key, g.headers::json, g.message
FROM given AS g WHERE g.raw OR (g.id IN (SELECT id FROM fresh)) IS TRUE
ORDER BY g.place
ON CONFLICT (event_id) DO NOTHING
