-- The log of messages, for a bus without a broker, and resume handles. The code of the release before knows neither.
CREATE TABLE {schema}.log_topics (
  id int GENERATED ALWAYS AS IDENTITY,
  partitions int NOT NULL,
  name text COLLATE "C" NOT NULL,
  CONSTRAINT log_topics_pkey PRIMARY KEY (id),
  CONSTRAINT log_topics_name UNIQUE (name)
);

CREATE TABLE {schema}.log_partitions (
  next bigint NOT NULL,
  topic_id int NOT NULL,
  partition int NOT NULL,
  CONSTRAINT log_partitions_pkey PRIMARY KEY (topic_id, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.log_messages (
  position bigint NOT NULL,
  stored_at timestamptz NOT NULL,
  topic_id int NOT NULL,
  partition int NOT NULL,
  key bytea NOT NULL,
  value bytea,
  headers json NOT NULL,
  CONSTRAINT log_messages_pkey PRIMARY KEY (topic_id, partition, position)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);

CREATE TABLE {schema}.log_groups (
  live_until timestamptz NOT NULL,
  name text COLLATE "C" NOT NULL,
  CONSTRAINT log_groups_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE {schema}.log_members (
  member uuid NOT NULL,
  expires_at timestamptz NOT NULL,
  name text COLLATE "C" NOT NULL,
  topics text[] NOT NULL,
  CONSTRAINT log_members_pkey PRIMARY KEY (name, member)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

CREATE TABLE {schema}.log_shares (
  position bigint NOT NULL,
  member uuid,
  topic_id int NOT NULL,
  partition int NOT NULL,
  generation int NOT NULL,
  name text COLLATE "C" NOT NULL,
  CONSTRAINT log_shares_pkey PRIMARY KEY (name, topic_id, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);

CREATE TABLE {schema}.flow_resume_handles (
  correlation_id text COLLATE "C" NOT NULL,
  expect_types text[] NOT NULL,
  expect_count int NOT NULL,
  arrived int NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,
  ended_at timestamptz,
  wake_at timestamptz,
  request_types text[] NOT NULL,
  agents text[] NOT NULL,
  state text NOT NULL,
  token_hash text COLLATE "C" NOT NULL,
  target text NOT NULL,
  payload json,
  CONSTRAINT flow_resume_handles_pkey PRIMARY KEY (correlation_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX flow_resume_handles_waiting ON {schema}.flow_resume_handles (expires_at) WHERE state = 'waiting';
CREATE INDEX flow_resume_handles_wakes ON {schema}.flow_resume_handles (wake_at) WHERE wake_at IS NOT NULL;
CREATE UNIQUE INDEX flow_resume_handles_token ON {schema}.flow_resume_handles (token_hash) WHERE token_hash <> '';
CREATE INDEX flow_resume_handles_newest ON {schema}.flow_resume_handles (created_at, correlation_id)
  WHERE state <> 'early';
CREATE INDEX flow_resume_handles_ended ON {schema}.flow_resume_handles (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX flow_resume_handles_early ON {schema}.flow_resume_handles (created_at) WHERE state = 'early';

CREATE TABLE {schema}.resume_events (
  seq bigint GENERATED ALWAYS AS IDENTITY,
  noted_at timestamptz NOT NULL,
  dead boolean NOT NULL,
  correlation_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,
  agent text COLLATE "C" NOT NULL,
  type text NOT NULL,
  cause text COLLATE "C",
  noted json NOT NULL,
  CONSTRAINT resume_events_pkey PRIMARY KEY (correlation_id, event_id, dead, agent)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX resume_events_dead ON {schema}.resume_events (correlation_id) WHERE dead;
