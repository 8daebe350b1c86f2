CREATE TABLE {schema}.events (
  position bigint GENERATED ALWAYS AS IDENTITY,
  id uuid NOT NULL,
  occurred_at timestamptz NOT NULL,
  schema_version int NOT NULL,
  retries int NOT NULL,
  type text NOT NULL,
  aggregate_type text NOT NULL,
  aggregate_id text COLLATE "C" NOT NULL,
  correlation_id text COLLATE "C",
  causation_id text,
  payload json NOT NULL,
  CONSTRAINT events_pkey PRIMARY KEY (id),
  CONSTRAINT events_position_key UNIQUE (position)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
CREATE INDEX events_correlation ON {schema}.events (correlation_id, position) WHERE correlation_id IS NOT NULL;
CREATE INDEX events_aggregate ON {schema}.events (aggregate_id, position);
CREATE INDEX events_age ON {schema}.events (occurred_at);

CREATE TABLE {schema}.event_outbox (
  position bigint GENERATED ALWAYS AS IDENTITY,
  event_id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  parked_at timestamptz,
  raw boolean NOT NULL,
  state text NOT NULL,
  topic text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  error text,
  headers json,
  message bytea,
  CONSTRAINT event_outbox_pkey PRIMARY KEY (position)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE UNIQUE INDEX event_outbox_event ON {schema}.event_outbox (event_id);
CREATE INDEX event_outbox_waiting ON {schema}.event_outbox (position) WHERE state = 'waiting';
CREATE INDEX event_outbox_parked ON {schema}.event_outbox (topic, md5(key), position) WHERE state = 'parked';
CREATE INDEX event_outbox_held ON {schema}.event_outbox (topic, md5(key), position) WHERE state = 'held';

CREATE TABLE {schema}.event_inbox (
  handled_at timestamptz NOT NULL,
  consumer text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  CONSTRAINT event_inbox_pkey PRIMARY KEY (consumer, message_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
CREATE INDEX event_inbox_age ON {schema}.event_inbox (handled_at);

-- Workers of the release before name the column in ON CONFLICT only: their rows get the default.
ALTER TABLE {schema}.leader DROP CONSTRAINT leader_one_check, ALTER COLUMN one DROP DEFAULT;
ALTER TABLE {schema}.leader ALTER COLUMN one TYPE text USING 'engine';
ALTER TABLE {schema}.leader ALTER COLUMN one SET DEFAULT 'engine';
