-- Put events and messages into the outbox, the events into their log as well, once per id: see the function in schema.sql.
-- JSON comes as text: on the caller's own connection a codec for json may be set. A raw one has no event, only a message.
-- Locks: the new rows; an id that another open transaction inserts is waited for. Index: primary key of the log,
-- event_outbox_event.
SELECT {schema}.insert_events(%(ids)s::uuid[], %(topics)s::text[], %(keys)s::text[], %(raws)s::boolean[],
  %(types)s::text[], %(aggregate_types)s::text[], %(aggregate_ids)s::text[], %(correlation_ids)s::text[],
  %(causation_ids)s::text[], %(times)s::timestamptz[], %(schema_versions)s::int[], %(retries)s::int[],
  %(payloads)s::text[], %(messages)s::bytea[], %(headers)s::text[], %(now)s::timestamptz)
