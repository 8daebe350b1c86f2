CREATE TABLE {schema}.jobs (
  id uuid NOT NULL,
  batch_id uuid,
  session uuid,
  retry_of uuid,
  sort_at timestamptz NOT NULL,
  run_at timestamptz,
  created_at timestamptz NOT NULL,
  started_at timestamptz,
  timeout interval,
  ordinal int,
  attempt int NOT NULL DEFAULT 0,
  priority smallint NOT NULL,
  failures smallint NOT NULL DEFAULT 0,
  crashes smallint NOT NULL DEFAULT 0,
  lone_crashes smallint NOT NULL DEFAULT 0,
  max_attempts smallint NOT NULL,
  at_most_once boolean NOT NULL DEFAULT false,
  cancel_requested boolean NOT NULL DEFAULT false,
  state text NOT NULL,
  queue text NOT NULL,
  task text NOT NULL,
  limit_key text,
  args json NOT NULL,
  CONSTRAINT jobs_pkey PRIMARY KEY (id),
  CONSTRAINT jobs_state_check CHECK (state IN ('scheduled', 'ready', 'running', 'parked')),
  CONSTRAINT jobs_running_check CHECK (state <> 'running' OR (session IS NOT NULL AND started_at IS NOT NULL))
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
CREATE INDEX jobs_claim ON {schema}.jobs (queue, sort_at, id) WHERE state = 'ready' AND limit_key IS NULL;
CREATE INDEX jobs_claim_capped ON {schema}.jobs (limit_key, sort_at, id)
  WHERE state = 'ready' AND limit_key IS NOT NULL;
CREATE INDEX jobs_running_capped ON {schema}.jobs (limit_key) WHERE state = 'running' AND limit_key IS NOT NULL;
CREATE INDEX jobs_due ON {schema}.jobs (run_at) WHERE state = 'scheduled';
CREATE INDEX jobs_batch ON {schema}.jobs (batch_id, state) WHERE batch_id IS NOT NULL;
CREATE INDEX jobs_to_cancel ON {schema}.jobs (session) WHERE cancel_requested;
CREATE UNIQUE INDEX jobs_retry ON {schema}.jobs (retry_of) WHERE retry_of IS NOT NULL;

CREATE TABLE {schema}.finished_jobs (
  id uuid NOT NULL,
  batch_id uuid,
  session uuid,
  retry_of uuid,
  xact xid8 NOT NULL DEFAULT pg_current_xact_id(),
  run_at timestamptz,
  created_at timestamptz NOT NULL,
  started_at timestamptz,
  finished_at timestamptz NOT NULL,
  timeout interval,
  ordinal int,
  attempt int NOT NULL,
  priority smallint NOT NULL,
  failures smallint NOT NULL,
  crashes smallint NOT NULL,
  max_attempts smallint NOT NULL,
  at_most_once boolean NOT NULL,
  cancel_requested boolean NOT NULL,
  state text NOT NULL,
  queue text NOT NULL,
  task text NOT NULL,
  limit_key text,
  args json NOT NULL,
  result json,
  error json,
  usage json,
  CONSTRAINT finished_jobs_pkey PRIMARY KEY (id),
  CONSTRAINT finished_jobs_state_check CHECK (state IN ('succeeded', 'failed', 'cancelled'))
);
CREATE INDEX finished_jobs_items ON {schema}.finished_jobs (batch_id, xact, ordinal) WHERE batch_id IS NOT NULL;
CREATE INDEX finished_jobs_unsuccessful ON {schema}.finished_jobs (batch_id, state)
  WHERE batch_id IS NOT NULL AND state <> 'succeeded';
CREATE INDEX finished_jobs_age ON {schema}.finished_jobs (queue, state, finished_at);
CREATE INDEX finished_jobs_retry ON {schema}.finished_jobs (retry_of) WHERE retry_of IS NOT NULL;

CREATE TABLE {schema}.attempts (
  job_id uuid NOT NULL,
  attempt int NOT NULL,
  session uuid,
  started_at timestamptz,
  finished_at timestamptz NOT NULL,
  outcome text NOT NULL,
  error json,
  CONSTRAINT attempts_pkey PRIMARY KEY (job_id, attempt)
);

CREATE TABLE {schema}.steps (
  job_id uuid NOT NULL,
  name text NOT NULL,
  value json NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT steps_pkey PRIMARY KEY (job_id, name)
);

CREATE TABLE {schema}.idempotency_keys (
  scope text NOT NULL,
  key text NOT NULL,
  id uuid NOT NULL,
  body_hash text NOT NULL,
  expires_at timestamptz,
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (scope, key)
);
CREATE INDEX idempotency_keys_expiry ON {schema}.idempotency_keys (expires_at) WHERE expires_at IS NOT NULL;

CREATE TABLE {schema}.batches (
  id uuid NOT NULL,
  run_at timestamptz,
  created_at timestamptz NOT NULL,
  opened_at timestamptz NOT NULL,
  sealed_at timestamptz,
  closed_at timestamptz,
  timeout interval,
  total int,
  max_failed int,
  round int NOT NULL DEFAULT 1,
  changes int NOT NULL DEFAULT 0,
  priority smallint NOT NULL,
  max_attempts smallint NOT NULL,
  at_most_once boolean NOT NULL,
  state text NOT NULL,
  outcome text,
  queue text NOT NULL,
  task text NOT NULL,
  limit_key text,
  key text,
  body_hash text NOT NULL,
  on_close json,
  CONSTRAINT batches_pkey PRIMARY KEY (id),
  CONSTRAINT batches_state_check CHECK (state IN ('open', 'sealed', 'cancelling', 'abandoned', 'closed')),
  CONSTRAINT batches_outcome_check CHECK (outcome IN ('succeeded', 'partial', 'failed', 'cancelled')),
  CONSTRAINT batches_closed_check
    CHECK ((state = 'closed') = (outcome IS NOT NULL) AND (state = 'closed') = (closed_at IS NOT NULL)),
  CONSTRAINT batches_total_check CHECK (state IN ('open', 'abandoned') OR total IS NOT NULL)
);
CREATE INDEX batches_live ON {schema}.batches (state, id) WHERE state <> 'closed';
CREATE INDEX batches_closed ON {schema}.batches (closed_at) WHERE state = 'closed';

CREATE TABLE {schema}.batch_slices (
  batch_id uuid NOT NULL,
  first_ordinal int NOT NULL,
  count int NOT NULL,
  hash text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT batch_slices_pkey PRIMARY KEY (batch_id, first_ordinal)
);

CREATE TABLE {schema}.sessions (
  id uuid NOT NULL,
  start_time bigint NOT NULL,
  started_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  pid int NOT NULL,
  swept boolean NOT NULL DEFAULT false,
  host text NOT NULL,
  hostname text NOT NULL,
  queues json NOT NULL,
  stats json NOT NULL DEFAULT '{}',
  CONSTRAINT sessions_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50);

CREATE TABLE {schema}.leader (
  one boolean NOT NULL DEFAULT true,
  session uuid NOT NULL,
  term bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT leader_pkey PRIMARY KEY (one),
  CONSTRAINT leader_one_check CHECK (one)
);

CREATE TABLE {schema}.queues (
  name text NOT NULL,
  paused boolean NOT NULL DEFAULT false,
  reason text,
  CONSTRAINT queues_pkey PRIMARY KEY (name)
);

CREATE TABLE {schema}.limits (
  key text NOT NULL,
  cap int NOT NULL,
  CONSTRAINT limits_pkey PRIMARY KEY (key),
  CONSTRAINT limits_cap_check CHECK (cap >= 0)
);

CREATE TABLE {schema}.answers (
  key text NOT NULL,
  answer text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT answers_pkey PRIMARY KEY (key)
);
CREATE INDEX answers_age ON {schema}.answers (created_at);
