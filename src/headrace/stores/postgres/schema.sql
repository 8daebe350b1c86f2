-- The schema as it stands after all migrations: this file is for people, `migrations/` is what machines run, and a test
-- holds the two together. {schema} is the name chosen in [queue] schema, "headrace" by default.
--
-- Hot rows (jobs) lie apart from history (finished_jobs): a job is in exactly one of the two. Columns are ordered by
-- width so that rows carry no padding. There are no foreign keys: each would cost the hot path a lock per row.
-- The shape was measured: docs/decisions/0001-hot-path.md. Vacuum settings keep dead rows few at any size of a table:
-- docs/decisions/0002-growth.md.

-- Which migrations were applied.
CREATE TABLE {schema}.migrations (
  version int PRIMARY KEY,
  name text NOT NULL,
  applied_at timestamptz NOT NULL DEFAULT now(),
  store_id uuid                                -- of the first: which store this is; blobs of its runs lie below it
);

-- Jobs that are not final. Every index here costs every job; a claim leaves jobs_claim, so no update is ever HOT.
CREATE TABLE {schema}.jobs (
  id uuid NOT NULL,                            -- UUID v7, made by the caller
  batch_id uuid,                               -- the batch it is an item of
  session uuid,                                -- who runs it; part of the fence
  retry_of uuid,                               -- the final job it is a copy of
  sort_at timestamptz NOT NULL,                -- claim order: ready time less the head start of its priority
  run_at timestamptz,                          -- not before this
  created_at timestamptz NOT NULL,
  started_at timestamptz,                      -- of the running attempt
  timeout interval,                            -- of one attempt
  ordinal int,                                 -- place in its batch
  attempt int NOT NULL DEFAULT 0,              -- claims so far; part of the fence, never falls
  priority smallint NOT NULL,                  -- 0 (earliest) to 9
  failures smallint NOT NULL DEFAULT 0,        -- compared with max_attempts
  crashes smallint NOT NULL DEFAULT 0,         -- sessions or child processes that died running it
  lone_crashes smallint NOT NULL DEFAULT 0,    -- crashes alone in a child process, since it last made progress
  max_attempts smallint NOT NULL,
  at_most_once boolean NOT NULL DEFAULT false,
  cancel_requested boolean NOT NULL DEFAULT false,
  state text NOT NULL,                         -- scheduled -> ready -> running -> (history) | scheduled | ready | parked
  queue text NOT NULL,
  task text NOT NULL,
  limit_key text,                              -- the cap it counts against
  args json NOT NULL,                          -- {"args": [...], "kwargs": {...}}, as the caller wrote it
  lane text COLLATE "C",                       -- its gate as JSON: what must let it pass; null: nothing
  cost double precision,                       -- of its share, and of limits that take it; null: 1
  run_id uuid,                                 -- the run it belongs to ...
  node text,                                   -- ... and the path of its node there; null: it works the whole run
  parked_on text COLLATE "C",                  -- the signal that wakes it; held by its paused batch: chr(31) and its id
  -- Half of each page is left for the second entry that a job gets when it is claimed.
  CONSTRAINT jobs_pkey PRIMARY KEY (id) WITH (fillfactor = 50)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- The claim walks this one and nothing else.
CREATE INDEX jobs_claim ON {schema}.jobs (queue, sort_at, id) WHERE state = 'ready' AND lane IS NULL;
-- The gate: what waits, lane by lane ...
CREATE INDEX jobs_waiting ON {schema}.jobs (queue, lane, sort_at, id) WHERE state = 'ready' AND lane IS NOT NULL;
-- ... what runs, counted each time, and which jobs keep an in-order key while they wait for their next run.
CREATE INDEX jobs_started ON {schema}.jobs (queue, lane) WHERE state = 'running' AND lane IS NOT NULL;
CREATE INDEX jobs_keeping ON {schema}.jobs (queue, lane)
  WHERE state IN ('scheduled', 'parked') AND attempt > 0 AND lane ~ '"key_limit":1[,}]';
-- The capped claim: the order within a key, so that a saturated key slows no other ...
CREATE INDEX jobs_claim_capped ON {schema}.jobs (limit_key, sort_at, id)
  WHERE state = 'ready' AND limit_key IS NOT NULL;
-- ... and what runs under it, counted each time.
CREATE INDEX jobs_running_capped ON {schema}.jobs (limit_key) WHERE state = 'running' AND limit_key IS NOT NULL;
-- The stager.
CREATE INDEX jobs_due ON {schema}.jobs (run_at) WHERE state = 'scheduled';
-- Counting what waits in a bounded queue; jobs that are never scheduled do not pay.
CREATE INDEX jobs_scheduled ON {schema}.jobs (queue) WHERE state = 'scheduled';
-- Progress and closing; jobs without a batch do not pay.
CREATE INDEX jobs_batch ON {schema}.jobs (batch_id, state) WHERE batch_id IS NOT NULL;
-- The heartbeat hears of cancels; nearly always empty.
CREATE INDEX jobs_to_cancel ON {schema}.jobs (session) WHERE cancel_requested;
-- One retry of a final job at a time; nearly always empty.
CREATE UNIQUE INDEX jobs_retry ON {schema}.jobs (retry_of) WHERE retry_of IS NOT NULL;
-- What of a run is live; jobs without a run do not pay.
CREATE INDEX jobs_run ON {schema}.jobs (run_id) WHERE run_id IS NOT NULL;
-- Whom a signal wakes and whom a paused batch holds, in their order, and whom the stager wakes; jobs that wait for a signal alone are not in the second one.
CREATE INDEX jobs_parked ON {schema}.jobs (parked_on, sort_at, id) WHERE state = 'parked' AND parked_on IS NOT NULL;
CREATE INDEX jobs_parked_due ON {schema}.jobs (run_at) WHERE state = 'parked' AND run_at IS NOT NULL;

-- Final jobs. A row never changes, but for `settled`; it goes when its retention is over.
CREATE TABLE {schema}.finished_jobs (
  id uuid NOT NULL,
  batch_id uuid,
  session uuid,                                -- under which it ended; null when it ended while it waited
  retry_of uuid,
  xact xid8 NOT NULL DEFAULT pg_current_xact_id(), -- who recorded it: readers of a batch go by it
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
  state text NOT NULL,                         -- succeeded | failed | cancelled
  queue text NOT NULL,
  task text NOT NULL,
  limit_key text,
  args json NOT NULL,
  result json,                                 -- of a success
  error json,                                  -- {"kind", "message", "trace"} of any other ending
  usage json,                                  -- what its model calls used
  lane text COLLATE "C",
  cost double precision,
  run_id uuid,
  node text,
  settled boolean,                             -- what its end sets going in its run was applied; null: not yet, or no run
  CONSTRAINT finished_jobs_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
-- Items of a batch in the order they were recorded, and how many there are.
CREATE INDEX finished_jobs_items ON {schema}.finished_jobs (batch_id, xact, ordinal) WHERE batch_id IS NOT NULL;
-- What decides over a batch: policies, outcomes, retries.
CREATE INDEX finished_jobs_unsuccessful ON {schema}.finished_jobs (batch_id, state)
  WHERE batch_id IS NOT NULL AND state <> 'succeeded';
-- Pruning. Rows of one statement share their time, so an entry is a few bytes; with the queue it would cost more.
-- This predicate and the next are written so that only statements that mean them match: one that asks for a
-- batch and a state, planned on an empty table, would otherwise walk one of them whole.
CREATE INDEX finished_jobs_succeeded ON {schema}.finished_jobs (finished_at)
  WHERE state IS NOT DISTINCT FROM 'succeeded';
-- Pruning and counting the others, dead letters; successes do not pay.
CREATE INDEX finished_jobs_failed ON {schema}.finished_jobs (queue, state, finished_at)
  WHERE state IS DISTINCT FROM 'succeeded';
-- Whether a final job was retried. Not unique: ending a job must never fail.
CREATE INDEX finished_jobs_retry ON {schema}.finished_jobs (retry_of) WHERE retry_of IS NOT NULL;
-- Jobs of runs that the store ended by itself, until that is settled; nearly always empty.
CREATE INDEX finished_jobs_unsettled ON {schema}.finished_jobs (finished_at, id)
  WHERE run_id IS NOT NULL AND settled IS NOT TRUE;

-- Attempts that failed or crashed without ending their job (releases and snoozes leave no row); the one that ended it is the job's row in history.
CREATE TABLE {schema}.attempts (
  job_id uuid NOT NULL,
  attempt int NOT NULL,
  session uuid,
  started_at timestamptz,
  finished_at timestamptz NOT NULL,
  outcome text NOT NULL,                       -- failed (charged) | crashed | lost (elsewhere)
  error json,
  CONSTRAINT attempts_pkey PRIMARY KEY (job_id, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- What handlers logged in attempts, only of those that logged something: the last lines, bounded. Of a job the last
-- attempts, for one may snooze without end. Not in `attempts`: that has no row for what snoozed, or for the last one.
CREATE TABLE {schema}.attempt_logs (
  job_id uuid NOT NULL,
  attempt int NOT NULL,
  log json NOT NULL,                           -- {"dropped", "lines": [[instant, level, message], …]}
  CONSTRAINT attempt_logs_pkey PRIMARY KEY (job_id, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- Checkpoints: the value of a step, once per job and name.
CREATE TABLE {schema}.steps (
  job_id uuid NOT NULL,
  name text NOT NULL,
  value json NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT steps_pkey PRIMARY KEY (job_id, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- What a key was used for. Scopes are job:TASK, batch:TASK, run:WORKFLOW, and round:BATCH with ROUND:FIRST ORDINAL as
-- the body.
CREATE TABLE {schema}.idempotency_keys (
  scope text NOT NULL,
  key text NOT NULL,
  id uuid NOT NULL,
  body_hash text NOT NULL,
  expires_at timestamptz,                      -- null: lives as long as its batch or run
  CONSTRAINT idempotency_keys_pkey PRIMARY KEY (scope, key)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX idempotency_keys_expiry ON {schema}.idempotency_keys (expires_at) WHERE expires_at IS NOT NULL;

-- Batches. Workers never write here; there are no counters.
CREATE TABLE {schema}.batches (
  id uuid NOT NULL,
  run_at timestamptz,
  created_at timestamptz NOT NULL,
  opened_at timestamptz NOT NULL,              -- of the latest round; with the slices: when its submitter was last heard
  sealed_at timestamptz,
  closed_at timestamptz,
  timeout interval,
  total int,                                   -- null while items are being appended
  max_failed int,                              -- the close policy; null: failures are never contagious
  round int NOT NULL DEFAULT 1,
  changes int NOT NULL DEFAULT 0,              -- rises when live jobs are added after sealing: closers compare it
  priority smallint NOT NULL,
  max_attempts smallint NOT NULL,
  at_most_once boolean NOT NULL,
  state text NOT NULL,                         -- open -> sealed -> closed; cancelling, abandoned beside
  outcome text,                                -- succeeded | partial | failed | cancelled, exactly when closed
  queue text NOT NULL,
  task text NOT NULL,
  limit_key text,
  key text,
  body_hash text NOT NULL,
  on_close json,                               -- the specification of the callback
  lane text COLLATE "C",
  cost double precision,
  paused_at timestamptz,                       -- nothing more of it starts since then; null: it is not paused
  paused_reason text,
  CONSTRAINT batches_pkey PRIMARY KEY (id),
  CONSTRAINT batches_state_check CHECK (state IN ('open', 'sealed', 'cancelling', 'abandoned', 'closed')),
  CONSTRAINT batches_outcome_check CHECK (outcome IN ('succeeded', 'partial', 'failed', 'cancelled')),
  CONSTRAINT batches_closed_check
    CHECK ((state = 'closed') = (outcome IS NOT NULL) AND (state = 'closed') = (closed_at IS NOT NULL)),
  CONSTRAINT batches_total_check CHECK (state IN ('open', 'abandoned') OR total IS NOT NULL)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
-- The aggregator, and the claim that leaves out batches being cancelled.
CREATE INDEX batches_live ON {schema}.batches (state, id) WHERE state <> 'closed';
-- Those whose jobs are to be held; nearly always empty.
CREATE INDEX batches_paused ON {schema}.batches (id) WHERE paused_at IS NOT NULL;
-- Pruning.
CREATE INDEX batches_closed ON {schema}.batches (closed_at) WHERE state = 'closed';

-- Which items were appended: a second submitter of the same key finds its equal slices here.
CREATE TABLE {schema}.batch_slices (
  batch_id uuid NOT NULL,
  first_ordinal int NOT NULL,
  count int NOT NULL,
  hash text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT batch_slices_pkey PRIMARY KEY (batch_id, first_ordinal)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- One row per start of a worker. Half-filled pages: heartbeats update in place and touch no index.
CREATE TABLE {schema}.sessions (
  id uuid NOT NULL,
  start_time bigint NOT NULL,
  started_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,             -- the lease, by the database's clock
  pid int NOT NULL,
  swept boolean NOT NULL DEFAULT false,        -- ended, and nothing is left to rescue
  host text NOT NULL,                          -- one kernel boot and pid namespace
  hostname text NOT NULL,
  queues json NOT NULL,
  stats json NOT NULL DEFAULT '{}',
  searched_at timestamptz,                     -- ended, and a search for what it ran began then and is complete
  CONSTRAINT sessions_pkey PRIMARY KEY (id)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- The one leader of each role. The rows stay after a resignation, so that terms never repeat.
CREATE TABLE {schema}.leader (
  one text NOT NULL DEFAULT 'engine',          -- the role: engine | relay
  session uuid NOT NULL,
  term bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT leader_pkey PRIMARY KEY (one)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- What operators and apps set for queues.
CREATE TABLE {schema}.queues (
  name text NOT NULL,
  paused boolean NOT NULL DEFAULT false,
  reason text,
  gated boolean NOT NULL DEFAULT false,        -- a job of it had a gate, or it has a limit of its own: for good
  closed boolean NOT NULL DEFAULT false,       -- nothing is enqueued any more: being drained
  alarm_size int,                              -- so many ready jobs are an alarm
  alarm_age interval,                          -- and so is one that has been ready so long
  CONSTRAINT queues_pkey PRIMARY KEY (name)
);

-- Caps: what is declared in code, and what an operator set instead.
CREATE TABLE {schema}.limits (
  key text NOT NULL,
  cap int,
  override int,
  CONSTRAINT limits_pkey PRIMARY KEY (key),
  CONSTRAINT limits_cap_check CHECK (cap >= 0),
  CONSTRAINT limits_override_check CHECK (override >= 0)
);

-- Token buckets: their rates, and the level at an instant, from which the level now follows. Half-filled pages here and
-- below: an admission updates in place.
CREATE TABLE {schema}.rates (
  name text COLLATE "C" NOT NULL,
  per_second double precision,                 -- declared in code; null: only closed, or overridden
  burst double precision,
  override_per_second double precision,        -- set by an operator
  override_burst double precision,
  level double precision,                      -- below zero: in debt; null: never used, and full
  at timestamptz NOT NULL,
  closed_until timestamptz,                    -- by the word of a provider
  CONSTRAINT rates_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- Circuit breakers: rule and record of the model. `version` rises with each change of the record.
CREATE TABLE {schema}.breakers (
  key text COLLATE "C" NOT NULL,
  max_failures int NOT NULL,
  error_rate double precision,
  min_calls int NOT NULL,
  span interval NOT NULL,
  cooldown interval NOT NULL,
  on_open text NOT NULL,                       -- wait | fail
  state text NOT NULL DEFAULT 'closed',        -- closed | open | half_open
  failures int NOT NULL DEFAULT 0,
  calls int NOT NULL DEFAULT 0,
  errors int NOT NULL DEFAULT 0,
  window_at timestamptz,
  retry_at timestamptz,
  probe_job uuid,                              -- under way as long as this attempt of it runs
  probe_attempt int,
  version bigint NOT NULL DEFAULT 0,
  CONSTRAINT breakers_pkey PRIMARY KEY (key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- The gate of each gated queue: admissions take turns on its row.
CREATE TABLE {schema}.gates (
  queue text NOT NULL,
  virtual double precision NOT NULL DEFAULT 0, -- the start tag of the job that started last, or the end of all tags
  CONSTRAINT gates_pkey PRIMARY KEY (queue)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- What fair keys have used. A tag behind the virtual time says nothing; its row goes, at the latest when nothing waits.
CREATE TABLE {schema}.shares (
  queue text NOT NULL,
  fair_key text COLLATE "C" NOT NULL,          -- '' for jobs without one
  weight double precision,                     -- null: 1
  finish double precision,
  CONSTRAINT shares_pkey PRIMARY KEY (queue, fair_key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
-- Schedules that apps declare. Few rows; half-filled pages: a fire moves its row in place.
CREATE TABLE {schema}.schedules (
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  declared_at timestamptz NOT NULL,            -- when an app last asked for it just so
  after_at timestamptz NOT NULL,               -- fire times up to here are dealt with
  next_at timestamptz,                         -- null: to be planned
  paused boolean NOT NULL DEFAULT false,
  rule text NOT NULL,                          -- expression and zone: planned anew when they change
  definition json NOT NULL,                    -- {"rule", "spec", "args"}: what fires when, and the job
  CONSTRAINT schedules_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50);

-- The last fires of each schedule.
CREATE TABLE {schema}.schedule_fires (
  job_id uuid NOT NULL,
  fire_at timestamptz NOT NULL,                -- the time it was for
  fired_at timestamptz NOT NULL,
  manual boolean NOT NULL,                     -- somebody asked for it, at no time of the schedule
  schedule text NOT NULL,
  CONSTRAINT schedule_fires_pkey PRIMARY KEY (job_id)
);
-- Why no fire time makes two jobs, whoever fires.
CREATE UNIQUE INDEX schedule_fires_once ON {schema}.schedule_fires (schedule, fire_at) WHERE NOT manual;
CREATE INDEX schedule_fires_history ON {schema}.schedule_fires (schedule, fired_at, fire_at);

-- Paid answers of models, by a hash of everything that determines them. text: an answer may hold escaped NULs.
CREATE TABLE {schema}.answers (
  key text NOT NULL,
  answer text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT answers_pkey PRIMARY KEY (key)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX answers_age ON {schema}.answers (created_at);

-- The ledger of model calls: recorded before they are sent, and kept as long as answers. What is in flight and what is
-- reserved of budgets is counted from the live rows.
CREATE TABLE {schema}.calls (
  id uuid NOT NULL,
  session uuid,                                -- who opened it; null: only its end is known
  job_id uuid,
  batch_id uuid,
  run_id uuid,
  opened_at timestamptz NOT NULL,
  ended_at timestamptz,
  prompt_tokens bigint NOT NULL,               -- the estimate: of the prompt ...
  most_tokens bigint NOT NULL,                 -- ... and the most of the answer
  most_nano bigint,                            -- the most it may cost, in nanodollars; null: the price is not known
  input_tokens bigint NOT NULL DEFAULT 0,      -- used; of an orphaned one at most, here and below
  output_tokens bigint NOT NULL DEFAULT 0,
  cached_tokens bigint NOT NULL DEFAULT 0,
  cost_nano bigint NOT NULL DEFAULT 0,
  answered int NOT NULL DEFAULT 0,             -- calls that the provider answered
  unpriced int NOT NULL DEFAULT 0,             -- 1: what it cost is not in cost_nano
  day date NOT NULL,                           -- (UTC) on which it was opened: it counts for that
  state text NOT NULL,                         -- prepared -> sent -> received -> settled | orphaned -> settled
  key text NOT NULL,                           -- of the answer
  pool text NOT NULL,
  provider text NOT NULL,
  model text NOT NULL,
  purpose text NOT NULL,
  tenant text,
  scopes text[] NOT NULL,                      -- under which names its cost is added up
  priced_by text NOT NULL DEFAULT '',          -- the table of prices; '': not known
  error text NOT NULL DEFAULT '',              -- code of the error it ended with; '': none
  request_id text,
  CONSTRAINT calls_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
-- One live call of a key, whoever opens it.
CREATE UNIQUE INDEX calls_held ON {schema}.calls (key) WHERE state IN ('prepared', 'sent', 'received');
-- What is in flight, counted each time.
CREATE INDEX calls_in_flight ON {schema}.calls (pool) WHERE state IN ('prepared', 'sent', 'received');
-- What may have been paid for nothing; nearly always empty.
CREATE INDEX calls_orphaned ON {schema}.calls (opened_at, id) WHERE state = 'orphaned';
-- Reading from the end, and pruning from the start.
CREATE INDEX calls_opened ON {schema}.calls (opened_at, id);
-- What one job asked for.
CREATE INDEX calls_job ON {schema}.calls (job_id, opened_at, id) WHERE job_id IS NOT NULL;

-- Parts of streamed answers, under the key of their call, until it has its answer.
CREATE TABLE {schema}.call_items (
  number int NOT NULL,
  key text NOT NULL,
  item text NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT call_items_pkey PRIMARY KEY (key, number)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX call_items_age ON {schema}.call_items (created_at);

-- What scopes may spend: "day", "tenant:NAME", "batch:ID", "run:ID". Null: no limit.
CREATE TABLE {schema}.budgets (
  scope text COLLATE "C" NOT NULL,
  cost_nano bigint,
  tokens bigint,
  CONSTRAINT budgets_pkey PRIMARY KEY (scope)
);

-- What ended calls used, by scope (those of budgets, and "pool:", "model:", "purpose:"), error and day on which they were
-- opened. Written once for each call, by the statement that ends it. Half-filled pages: it updates in place.
CREATE TABLE {schema}.spend (
  scope text COLLATE "C" NOT NULL,
  error text COLLATE "C" NOT NULL,
  day date NOT NULL,
  settled bigint NOT NULL,                     -- calls ...
  orphaned bigint NOT NULL,                    -- ... that ended so, and what the settled ones used:
  answered bigint NOT NULL,
  input_tokens bigint NOT NULL,
  output_tokens bigint NOT NULL,
  cached_tokens bigint NOT NULL,
  cost_nano bigint NOT NULL,
  unpriced bigint NOT NULL,
  lost_tokens bigint NOT NULL,                 -- what the orphaned ones may have used at most
  lost_nano bigint NOT NULL,
  lost_unpriced bigint NOT NULL,
  CONSTRAINT spend_pkey PRIMARY KEY (scope, day, error)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 200);
CREATE INDEX spend_age ON {schema}.spend (day);

-- The last number given to a name of each scope; claims of a scope take turns on its row.
CREATE TABLE {schema}.name_scopes (
  scope text NOT NULL,
  last_position bigint NOT NULL DEFAULT 0,
  CONSTRAINT name_scopes_pkey PRIMARY KEY (scope)
) WITH (fillfactor = 50);

-- Names that are used once within a scope.
CREATE TABLE {schema}.known_names (
  owner uuid NOT NULL,
  position bigint NOT NULL,
  scope text NOT NULL,
  key text NOT NULL,
  name text NOT NULL,
  CONSTRAINT known_names_pkey PRIMARY KEY (scope, position)
);
-- Why no key is taken twice; a key may be longer than an entry of an index.
CREATE UNIQUE INDEX known_names_once ON {schema}.known_names (scope, md5(key));
CREATE INDEX known_names_owner ON {schema}.known_names (scope, owner);

-- Graphs of workflows as they were when runs started, by their hash.
CREATE TABLE {schema}.snapshots (
  hash text COLLATE "C" NOT NULL,
  graph text NOT NULL,
  CONSTRAINT snapshots_pkey PRIMARY KEY (hash)
);

-- Definitions of workflows, every version; `active` is the same for all of a name.
CREATE TABLE {schema}.workflows (
  created_at timestamptz NOT NULL,
  version int NOT NULL,
  active boolean NOT NULL,
  name text COLLATE "C" NOT NULL,
  snapshot text COLLATE "C" NOT NULL,
  CONSTRAINT workflows_pkey PRIMARY KEY (name, version)
);

-- Runs of workflows. A row changes with the level of its run and with its end.
CREATE TABLE {schema}.runs (
  id uuid NOT NULL,
  rerun_of uuid,
  created_at timestamptz NOT NULL,
  finished_at timestamptz,
  version int NOT NULL,
  state text NOT NULL,                         -- running -> succeeded | failed; running -> cancelling -> cancelled
  level text NOT NULL,                         -- workflow_level | node_level
  workflow text COLLATE "C" NOT NULL,
  snapshot text COLLATE "C" NOT NULL,
  reason text NOT NULL,                        -- of the level
  input json NOT NULL,
  context json NOT NULL,                       -- {"user_id", "correlation_id", "metadata"}
  output json,
  error json,
  key text,
  rerun_from text,                             -- the node from which it repeats `rerun_of`
  CONSTRAINT runs_pkey PRIMARY KEY (id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
-- Listing; the second one is also how runs that are being cancelled are found.
CREATE INDEX runs_workflow ON {schema}.runs (workflow, id);
CREATE INDEX runs_state ON {schema}.runs (state, id);
-- Pruning, and whether a snapshot is used.
CREATE INDEX runs_finished ON {schema}.runs (finished_at) WHERE finished_at IS NOT NULL;
CREATE INDEX runs_snapshot ON {schema}.runs (snapshot);

-- How nodes of runs ended; a row never changes. A node without one is a live job, or pending.
CREATE TABLE {schema}.run_nodes (
  run_id uuid NOT NULL,
  seq bigint GENERATED BY DEFAULT AS IDENTITY, -- the order of the ends
  started_at timestamptz,
  finished_at timestamptz NOT NULL,
  attempts int NOT NULL,
  reused boolean NOT NULL,
  path text COLLATE "C" NOT NULL,
  state text NOT NULL,                         -- success | failed | cancelled | skipped
  port text NOT NULL,
  artifact text NOT NULL,
  output json,
  error json,
  CONSTRAINT run_nodes_pkey PRIMARY KEY (run_id, path)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);

-- What has arrived at nodes that wait for several others. Half-filled pages: arrivals update in place.
CREATE TABLE {schema}.run_joins (
  run_id uuid NOT NULL,
  total int NOT NULL,
  remaining int NOT NULL,                      -- of the total
  fired int NOT NULL,                          -- of those that arrived, so many lead here ...
  need int NOT NULL,                           -- ... and so many are enough
  decided int NOT NULL,                        -- 0: not yet, 1: by the latest arrival, 2: before
  path text COLLATE "C" NOT NULL,
  CONSTRAINT run_joins_pkey PRIMARY KEY (run_id, path)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);

-- Signals that came, also early, and keys that jobs wait for: parking and sending take turns on the row.
CREATE TABLE {schema}.signals (
  created_at timestamptz NOT NULL,
  sent_at timestamptz,
  key text COLLATE "C" NOT NULL,
  payload json,                                -- null: has not come
  CONSTRAINT signals_pkey PRIMARY KEY (key)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
-- Pruning, of those that came and of those that did not.
CREATE INDEX signals_sent ON {schema}.signals (sent_at) WHERE payload IS NOT NULL;
CREATE INDEX signals_awaited ON {schema}.signals (created_at) WHERE payload IS NULL;

-- The log of events: what happened, appended in the transaction of its cause.
CREATE TABLE {schema}.events (
  position bigint GENERATED ALWAYS AS IDENTITY,  -- order of inserts
  id uuid NOT NULL,
  occurred_at timestamptz NOT NULL,
  schema_version int NOT NULL,                 -- of the payload
  retries int NOT NULL,                        -- of what led to it
  type text NOT NULL,                          -- Domain.Aggregate.Event
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
-- Pruning.
CREATE INDEX events_age ON {schema}.events (occurred_at);

-- What no bus has yet: events by id, and messages as they are. A row goes when it is published, and its event stays.
CREATE TABLE {schema}.event_outbox (
  position bigint GENERATED ALWAYS AS IDENTITY,  -- order of inserts; of commits only for those who take turns
  event_id uuid NOT NULL,                      -- of the event, or of the message itself
  created_at timestamptz NOT NULL,
  parked_at timestamptz,
  raw boolean NOT NULL,                        -- a message as it is; there is no event
  state text NOT NULL,                         -- waiting -> gone | parked; waiting <-> held behind a parked one
  topic text COLLATE "C" NOT NULL,
  key text COLLATE "C" NOT NULL,
  error text,                                  -- why it is parked
  headers json,                                -- of a message: [[name, value], ...]
  message bytea,                               -- null in a raw one: a tombstone
  CONSTRAINT event_outbox_pkey PRIMARY KEY (position)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);
-- What is inserted twice is there once; whether an old event has left.
CREATE UNIQUE INDEX event_outbox_event ON {schema}.event_outbox (event_id);
-- The relay walks this one, past whatever is parked and held.
CREATE INDEX event_outbox_waiting ON {schema}.event_outbox (position) WHERE state = 'waiting';
-- What keeps a key back, and what waits behind it.
CREATE INDEX event_outbox_parked ON {schema}.event_outbox (topic, md5(key), position) WHERE state = 'parked';
CREATE INDEX event_outbox_held ON {schema}.event_outbox (topic, md5(key), position) WHERE state = 'held';

-- Which messages consumers have handled, noted in the transaction of the effect.
CREATE TABLE {schema}.event_inbox (
  handled_at timestamptz NOT NULL,
  consumer text COLLATE "C" NOT NULL,
  message_id text COLLATE "C" NOT NULL,
  CONSTRAINT event_inbox_pkey PRIMARY KEY (consumer, message_id)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
-- Pruning.
CREATE INDEX event_inbox_age ON {schema}.event_inbox (handled_at);

-- The log of messages, for a bus without a broker: topics, whose number of partitions never changes ...
CREATE TABLE {schema}.log_topics (
  id int GENERATED ALWAYS AS IDENTITY,
  partitions int NOT NULL,                     -- of a topic
  name text COLLATE "C" NOT NULL,
  CONSTRAINT log_topics_pkey PRIMARY KEY (id),
  CONSTRAINT log_topics_name UNIQUE (name)
);

-- ... their partitions: a row is locked from giving out offsets to the commit ...
CREATE TABLE {schema}.log_partitions (
  next bigint NOT NULL,                        -- the next offset
  topic_id int NOT NULL,
  partition int NOT NULL,
  CONSTRAINT log_partitions_pkey PRIMARY KEY (topic_id, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);

-- ... and what is in them.
CREATE TABLE {schema}.log_messages (
  position bigint NOT NULL,                    -- the offset
  stored_at timestamptz NOT NULL,
  topic_id int NOT NULL,
  partition int NOT NULL,
  key bytea NOT NULL,                          -- UTF-8
  value bytea,
  headers json NOT NULL,                       -- [[name, value], …]
  CONSTRAINT log_messages_pkey PRIMARY KEY (topic_id, partition, position)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);

-- Groups: half-filled pages, each renewal of a member is an update in place.
CREATE TABLE {schema}.log_groups (
  live_until timestamptz NOT NULL,             -- the end of the last membership
  name text COLLATE "C" NOT NULL,
  CONSTRAINT log_groups_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- Members of groups, and what they read.
CREATE TABLE {schema}.log_members (
  member uuid NOT NULL,
  expires_at timestamptz NOT NULL,
  name text COLLATE "C" NOT NULL,              -- of the group
  topics text[] NOT NULL,                      -- one that ends with * stands for all that begin so
  CONSTRAINT log_members_pkey PRIMARY KEY (name, member)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000);

-- How far groups are, and who of them reads on: half-filled pages, offsets are updated in place.
CREATE TABLE {schema}.log_shares (
  position bigint NOT NULL,                    -- the next to be read
  member uuid,                                 -- null: nobody reads
  topic_id int NOT NULL,
  partition int NOT NULL,
  generation int NOT NULL,                     -- one more with each member
  name text COLLATE "C" NOT NULL,              -- of the group
  CONSTRAINT log_shares_pkey PRIMARY KEY (name, topic_id, partition)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);

-- What paused work waits for; made by whichever comes first, the handle or an event: they take turns on the row.
CREATE TABLE {schema}.flow_resume_handles (
  correlation_id text COLLATE "C" NOT NULL,
  expect_types text[] NOT NULL,
  expect_count int NOT NULL,
  arrived int NOT NULL,                        -- of those expected
  created_at timestamptz NOT NULL,             -- early: of the first event that is kept
  expires_at timestamptz,
  ended_at timestamptz,
  wake_at timestamptz,                         -- null: no target is to be woken
  request_types text[] NOT NULL,
  agents text[] NOT NULL,
  state text NOT NULL,                         -- early -> waiting -> resolved | expired | cancelled
  token_hash text COLLATE "C" NOT NULL,
  target text NOT NULL,
  payload json,                                -- came with the token
  CONSTRAINT flow_resume_handles_pkey PRIMARY KEY (correlation_id)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
-- Expiring, waking, tokens, listing, and pruning.
CREATE INDEX flow_resume_handles_waiting ON {schema}.flow_resume_handles (expires_at) WHERE state = 'waiting';
CREATE INDEX flow_resume_handles_wakes ON {schema}.flow_resume_handles (wake_at) WHERE wake_at IS NOT NULL;
CREATE UNIQUE INDEX flow_resume_handles_token ON {schema}.flow_resume_handles (token_hash) WHERE token_hash <> '';
CREATE INDEX flow_resume_handles_newest ON {schema}.flow_resume_handles (created_at, correlation_id)
  WHERE state <> 'early';
CREATE INDEX flow_resume_handles_ended ON {schema}.flow_resume_handles (ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX flow_resume_handles_early ON {schema}.flow_resume_handles (created_at) WHERE state = 'early';

-- Events that a handle waits for, or may wait for. The key has an event apart from its dead letters by each agent.
CREATE TABLE {schema}.resume_events (
  seq bigint GENERATED ALWAYS AS IDENTITY,
  noted_at timestamptz NOT NULL,
  dead boolean NOT NULL,
  correlation_id text COLLATE "C" NOT NULL,
  event_id text COLLATE "C" NOT NULL,          -- the id, or what is short and stands for it
  agent text COLLATE "C" NOT NULL,
  type text NOT NULL,
  cause text COLLATE "C",                      -- as event_id
  noted json NOT NULL,                         -- {"event", "dead", "agent", "error"}
  CONSTRAINT resume_events_pkey PRIMARY KEY (correlation_id, event_id, dead, agent)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
-- Where there are any, all of a handle are counted anew.
CREATE INDEX resume_events_dead ON {schema}.resume_events (correlation_id) WHERE dead;

-- Ordered logs that clients follow. Appends to one take turns on its row; numbers have no gaps.
CREATE TABLE {schema}.feeds (
  id bigint GENERATED ALWAYS AS IDENTITY,
  last_seq bigint NOT NULL,                    -- of its newest entry
  oldest_at timestamptz NOT NULL,              -- of its oldest entry; set by pruning, so that appends leave the index alone
  name text COLLATE "C" NOT NULL,
  CONSTRAINT feeds_pkey PRIMARY KEY (id),
  CONSTRAINT feeds_name UNIQUE (name)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000,
  autovacuum_vacuum_cost_delay = 0);
-- Pruning.
CREATE INDEX feeds_oldest ON {schema}.feeds (oldest_at);

-- Entries are read by number, behind the last one seen.
CREATE TABLE {schema}.feed_entries (
  feed_id bigint NOT NULL,
  seq bigint NOT NULL,                         -- from 1, without gaps until the oldest are pruned
  appended_at timestamptz NOT NULL,
  type text NOT NULL,
  key text COLLATE "C",                        -- once per feed; null: each is another one
  data json NOT NULL,
  CONSTRAINT feed_entries_pkey PRIMARY KEY (feed_id, seq)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05);
CREATE UNIQUE INDEX feed_entries_key ON {schema}.feed_entries (feed_id, key) WHERE key IS NOT NULL;

-- Who may use the HTTP service.
CREATE TABLE {schema}.api_tokens (
  id uuid NOT NULL,
  created_at timestamptz NOT NULL,
  expires_at timestamptz,                      -- null: never
  revoked_at timestamptz,
  used_at timestamptz,                         -- to the minute
  name text NOT NULL,
  shown text NOT NULL,                         -- how the token begins
  digest text COLLATE "C" NOT NULL,            -- SHA-256 in hex; the token itself is not stored
  scopes text[] NOT NULL,                      -- read | submit | operate
  CONSTRAINT api_tokens_pkey PRIMARY KEY (id),
  CONSTRAINT api_tokens_digest UNIQUE (digest)
);
CREATE INDEX api_tokens_newest ON {schema}.api_tokens (created_at, id);

-- The audit: who did what.
CREATE TABLE {schema}.actions (
  id uuid NOT NULL,
  done_at timestamptz NOT NULL,
  token_id uuid,                               -- null: it came without a token
  status smallint NOT NULL,                    -- of the HTTP answer, or the exit code of a command
  via text NOT NULL,                           -- api | page | cli
  who text NOT NULL,                           -- name of the token, or whoever needed none
  address text NOT NULL,
  operation text COLLATE "C" NOT NULL,
  subject json NOT NULL,                       -- parameters of the path
  detail json NOT NULL,                        -- names and numbers of the body, at most 2 KiB
  CONSTRAINT actions_pkey PRIMARY KEY (id)
);
CREATE INDEX actions_newest ON {schema}.actions (done_at, id);
CREATE INDEX actions_who ON {schema}.actions (who, done_at, id);
CREATE INDEX actions_operation ON {schema}.actions (operation, done_at, id);

-- For workers of the release before.
CREATE PROCEDURE {schema}.insert_job(job_id uuid, due timestamptz, head_start interval, job_queue text, job_task text,
  job_priority smallint, job_max_attempts smallint, job_timeout interval, job_at_most_once boolean,
  job_limit_key text, job_args json, clock timestamptz, channel text, payload text)
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO {schema}.jobs (id, state, sort_at, run_at, created_at, queue, task, priority, max_attempts, timeout,
    at_most_once, limit_key, args)
  VALUES (job_id, CASE WHEN due > clock THEN 'scheduled' ELSE 'ready' END, greatest(due, clock) - head_start, due,
    clock, job_queue, job_task, job_priority, job_max_attempts, job_timeout, job_at_most_once, job_limit_key, job_args)
  ON CONFLICT (id) DO NOTHING;
  IF channel IS NOT NULL THEN
    COMMIT;
    SET LOCAL lock_timeout = '20ms';
    PERFORM pg_notify(channel, payload);
  END IF;
END
$$;

-- One job, and the hint of it behind its commit: inside it all commits would queue up, sent by the client it would cost
-- a round trip. The hint does not wait for others that hint: it fails then, with the job stored. Without a channel it is
-- a plain insert, which may be part of a transaction.
CREATE PROCEDURE {schema}.insert_job(job_id uuid, due timestamptz, head_start interval, job_queue text, job_task text,
  job_priority smallint, job_max_attempts smallint, job_timeout interval, job_at_most_once boolean,
  job_limit_key text, job_lane text, job_cost double precision, job_args json, clock timestamptz, channel text,
  payload text)
LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO {schema}.jobs (id, state, sort_at, run_at, created_at, queue, task, priority, max_attempts, timeout,
    at_most_once, limit_key, args, lane, cost)
  VALUES (job_id, CASE WHEN due > clock THEN 'scheduled' ELSE 'ready' END, greatest(due, clock) - head_start, due,
    clock, job_queue, job_task, job_priority, job_max_attempts, job_timeout, job_at_most_once, job_limit_key, job_args,
    job_lane, job_cost)
  ON CONFLICT (id) DO NOTHING;
  IF job_lane IS NOT NULL THEN
    INSERT INTO {schema}.queues (name, gated) SELECT job_queue, true
    WHERE NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = job_queue AND q.gated)
    ON CONFLICT (name) DO UPDATE SET gated = true;
  END IF;
  IF channel IS NOT NULL THEN
    COMMIT;
    SET LOCAL lock_timeout = '20ms';
    PERFORM pg_notify(channel, payload);
  END IF;
END
$$;

-- When so many units may pass: '-infinity' now, 'infinity' when something happens rather than by time alone. A wait of
-- less than half a microsecond is none: clocks know no less, and a caller that waited exactly must pass.
CREATE FUNCTION {schema}.passes_at(units double precision, room double precision, burst double precision,
  per_second double precision, again_at timestamptz, clock timestamptz)
RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT CASE
    WHEN (least(units, burst) - room) * 1000000 <= per_second / 2
      THEN CASE WHEN again_at <= clock THEN '-infinity'::timestamptz ELSE again_at END
    WHEN per_second > 0
      THEN greatest(again_at, clock + make_interval(secs => least((least(units, burst) - room) / per_second, 1e9)))
    ELSE 'infinity' END
$$;

-- For how many seconds a bucket with so much room must be left alone before these units may pass.
CREATE FUNCTION {schema}.wait_of(units double precision, room double precision, burst double precision,
  per_second double precision)
RETURNS double precision LANGUAGE sql IMMUTABLE AS $$
  SELECT round(least(greatest(0, least(units, burst) - room) / per_second, 1e9) * 1000000) / 1000000
$$;

-- The level at an instant of a bucket that stood at `level`; one that never had a rate is full.
CREATE FUNCTION {schema}.level_at(level double precision, at timestamptz, per_second double precision,
  burst double precision, clock timestamptz)
RETURNS double precision LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN burst IS NULL THEN level ELSE
    least(burst, coalesce(level + greatest(0, extract(epoch FROM clock - at)::double precision) * per_second, burst)) END
$$;

-- A bucket by its rate in force, with its level at an instant; no rate: `burst` is NULL and nothing is limited. `levels`:
-- how buckets stand where they are counted instead (units, and how long closed); one that is unknown there is empty.
CREATE FUNCTION {schema}.bucket(bucket_name text, clock timestamptz, levels jsonb DEFAULT NULL)
RETURNS TABLE (level double precision, per_second double precision, burst double precision, closed_until timestamptz)
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN levels IS NULL THEN {schema}.level_at(r.level, r.at, f.per_second, f.burst, clock)
      ELSE least(f.burst, coalesce((levels #>> ARRAY[r.name, 'units'])::double precision, 0)) END,
    f.per_second, f.burst, CASE WHEN levels IS NULL THEN r.closed_until
      WHEN f.burst IS NOT NULL THEN clock + (levels #>> ARRAY[r.name, 'closed'])::interval END
  FROM {schema}.rates AS r CROSS JOIN LATERAL (
    SELECT CASE WHEN r.override_burst IS NULL THEN r.per_second ELSE r.override_per_second END AS per_second,
      CASE WHEN r.override_burst IS NULL THEN r.burst ELSE r.override_burst END AS burst) AS f
  WHERE r.name = bucket_name
$$;

-- What a job behind a gate needs, by kind in the order in which people are told of it: breakers to let it pass, units of
-- buckets (NULL: as many as its cost), room under caps.
CREATE FUNCTION {schema}.gate_needs(gate_queue text, gate jsonb)
RETURNS TABLE (kind text, name text, units double precision) LANGUAGE sql STABLE AS $$
  SELECT 'breaker', b.name, 1 FROM jsonb_array_elements_text(coalesce(gate -> 'breakers', '[]')) AS b (name)
  UNION ALL
  SELECT 'rate', 'queue:' || gate_queue, 1
  UNION ALL
  SELECT 'rate', l.key, (l.value #>> '{}')::double precision FROM jsonb_each(coalesce(gate -> 'limits', '{}')) AS l
  UNION ALL
  (SELECT 'running', 'queue:' || gate_queue, 1
  UNION
  SELECT 'running', c.name, 1 FROM jsonb_array_elements_text(coalesce(gate -> 'caps', '[]')) AS c (name))
$$;

-- How what is needed stands; what does not exist limits nothing and has no row. `room` is what may be taken now, by one
-- that needs more than `burst` if there is so much; `per_second` flows in; before `again_at` nothing passes. `refuses`:
-- jobs that this breaker does not let pass are failed. Grants stand for the buckets that exist.
CREATE FUNCTION {schema}.gate_stands(kinds text[], names text[], clock timestamptz, grants jsonb,
  levels jsonb DEFAULT NULL)
RETURNS TABLE (kind text, name text, room double precision, burst double precision, per_second double precision,
  again_at timestamptz, refuses boolean)
LANGUAGE sql STABLE AS $$
  WITH asked AS MATERIALIZED (SELECT a.kind, a.name FROM unnest(kinds, names) AS a (kind, name)),
  used AS MATERIALIZED (
    SELECT c.name, sum(r.used) AS used
    FROM (SELECT j.queue, j.lane, count(*) AS used FROM {schema}.jobs AS j
      WHERE j.state = 'running' AND j.lane IS NOT NULL GROUP BY j.queue, j.lane) AS r
    CROSS JOIN LATERAL (
      SELECT 'queue:' || r.queue AS name
      UNION
      SELECT n.name FROM jsonb_array_elements_text(
        CASE WHEN r.lane LIKE '%"caps":%' THEN coalesce(r.lane::jsonb -> 'caps', '[]') ELSE '[]' END) AS n (name)) AS c
    WHERE EXISTS (SELECT FROM asked AS a WHERE a.kind = 'running')
    GROUP BY c.name
  )
  SELECT a.kind, a.name, CASE b.state WHEN 'closed' THEN 'Infinity'::double precision WHEN 'open' THEN 1 ELSE
      CASE WHEN EXISTS (SELECT FROM {schema}.jobs AS p WHERE p.id = b.probe_job AND p.attempt = b.probe_attempt
        AND p.state = 'running') THEN 0 ELSE 1 END END,
    'Infinity'::double precision, 0::double precision,
    CASE b.state WHEN 'open' THEN coalesce(b.retry_at, '-infinity') ELSE '-infinity' END,
    b.on_open = 'fail'
  FROM asked AS a JOIN {schema}.breakers AS b ON b.key = a.name WHERE a.kind = 'breaker'
  UNION ALL
  SELECT a.kind, a.name,
    CASE WHEN l.burst IS NULL THEN 'Infinity' WHEN grants IS NULL THEN l.level
      ELSE coalesce((grants ->> a.name)::double precision * (1 + 1e-9), 0) END,
    CASE WHEN grants IS NULL THEN coalesce(l.burst, 'Infinity') ELSE 'Infinity' END, coalesce(l.per_second, 0),
    CASE WHEN grants IS NULL THEN coalesce(l.closed_until, '-infinity') ELSE '-infinity' END, false
  FROM asked AS a JOIN LATERAL {schema}.bucket(a.name, clock, levels) AS l ON true WHERE a.kind = 'rate'
  UNION ALL
  SELECT a.kind, a.name, (l.cap - coalesce((SELECT u.used FROM used AS u WHERE u.name = a.name), 0))::double precision,
    'Infinity', 0, '-infinity', false
  FROM asked AS a JOIN LATERAL (SELECT coalesce(c.override, c.cap) AS cap FROM {schema}.limits AS c WHERE c.key = a.name)
    AS l ON l.cap IS NOT NULL
  WHERE a.kind = 'running'
$$;

-- How many jobs hold each concurrency key of a queue: those that run, and those that keep an in-order key while they
-- wait for their next run.
CREATE FUNCTION {schema}.held_keys(gate_queue text) RETURNS TABLE (key text, used bigint) LANGUAGE sql STABLE AS $$
  SELECT h.lane::jsonb ->> 'key', sum(h.used)::bigint FROM (
    SELECT j.lane, count(*) AS used FROM {schema}.jobs AS j
    WHERE j.queue = gate_queue AND j.state = 'running' AND j.lane IS NOT NULL AND j.lane LIKE '%"key":%'
    GROUP BY j.lane
    UNION ALL
    SELECT j.lane, count(*) FROM {schema}.jobs AS j
    WHERE j.queue = gate_queue AND j.state IN ('scheduled', 'parked') AND j.attempt > 0
      AND j.lane ~ '"key_limit":1[,}]'
    GROUP BY j.lane) AS h
  GROUP BY 1
$$;

-- How many jobs may run with each concurrency key of a queue whose cap an operator set, by key.
CREATE FUNCTION {schema}.key_caps(gate_queue text) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT coalesce(jsonb_object_agg(substr(l.key, length(gate_queue) + 6), l.override), '{}') FROM {schema}.limits AS l
  WHERE starts_with(l.key, 'key:' || gate_queue || ':') AND l.override IS NOT NULL
$$;

-- What keeps a job behind a gate from starting, by the predicate of admission.
CREATE FUNCTION {schema}.obstacles(gate_queue text, gate jsonb, cost double precision, clock timestamptz,
  levels jsonb)
RETURNS TABLE (kind text, name text, units double precision, room double precision, until timestamptz)
LANGUAGE sql STABLE AS $$
  WITH needs AS MATERIALIZED (
    SELECT n.kind, n.name, coalesce(n.units, cost) AS units FROM {schema}.gate_needs(gate_queue, gate) AS n
  )
  SELECT n.kind, n.name, n.units, s.room,
    {schema}.passes_at(n.units, s.room, s.burst, s.per_second, s.again_at, clock) AS until
  FROM {schema}.gate_stands(
      ARRAY(SELECT n.kind FROM needs AS n), ARRAY(SELECT n.name FROM needs AS n), clock, NULL, levels) AS s
    JOIN needs AS n ON n.kind = s.kind AND n.name = s.name
  WHERE {schema}.passes_at(n.units, s.room, s.burst, s.per_second, s.again_at, clock) > '-infinity'
  UNION ALL
  SELECT 'key', k.key, 1, k.bound - k.used, 'infinity' FROM (
    SELECT gate ->> 'key' AS key, coalesce(({schema}.key_caps(gate_queue) ->> (gate ->> 'key'))::int,
        (gate ->> 'key_limit')::int) AS bound,
      coalesce((SELECT h.used FROM {schema}.held_keys(gate_queue) AS h WHERE h.key = gate ->> 'key'), 0) AS used
  ) AS k
  WHERE k.used >= k.bound
$$;

-- The lanes of a queue that have a job to offer, with the first of each: a walk over the index that jumps from lane to
-- lane, so that one with 50,000 waiting jobs costs as much as one with a single job. Jobs without a gate are the lane ''.
-- `rest` is the gate without what differs from job to job: lanes with equal rests need the same.
CREATE FUNCTION {schema}.waiting_lanes(gate_queue text, cancelling uuid[])
RETURNS TABLE (lane text, fair_key text, key text, key_limit int, rest text, id uuid, sort_at timestamptz,
  cost double precision)
LANGUAGE sql STABLE AS $$
  WITH RECURSIVE head AS (
    (SELECT j.lane, j.id, j.sort_at, j.cost FROM {schema}.jobs AS j
    WHERE j.queue = gate_queue AND j.state = 'ready' AND j.lane IS NOT NULL
      AND (j.batch_id IS NULL OR j.batch_id <> ALL(cancelling))
    ORDER BY j.lane, j.sort_at, j.id LIMIT 1)
    UNION ALL
    SELECT n.lane, n.id, n.sort_at, n.cost FROM head AS h CROSS JOIN LATERAL (
      SELECT j.lane, j.id, j.sort_at, j.cost FROM {schema}.jobs AS j
      WHERE j.queue = gate_queue AND j.state = 'ready' AND j.lane > h.lane
        AND (j.batch_id IS NULL OR j.batch_id <> ALL(cancelling))
      ORDER BY j.lane, j.sort_at, j.id LIMIT 1) AS n
  )
  SELECT h.lane, coalesce(g.gate ->> 'fair', ''), g.gate ->> 'key', coalesce((g.gate ->> 'key_limit')::int, 2147483647),
    (g.gate - '{fair,key,key_limit}'::text[])::text, h.id, h.sort_at, coalesce(h.cost, 1)
  FROM head AS h CROSS JOIN LATERAL (SELECT h.lane::jsonb AS gate) AS g
  UNION ALL
  (SELECT '', '', NULL, 2147483647, '{}', j.id, j.sort_at, coalesce(j.cost, 1) FROM {schema}.jobs AS j
  WHERE j.queue = gate_queue AND j.state = 'ready' AND j.lane IS NULL
    AND (j.batch_id IS NULL OR j.batch_id <> ALL(cancelling))
  ORDER BY j.sort_at, j.id LIMIT 1)
$$;

-- The first job of a lane behind a place; the lane '' is that of jobs without a gate.
CREATE FUNCTION {schema}.next_job(gate_queue text, gate_lane text, after_at timestamptz, after_id uuid, cancelling uuid[])
RETURNS TABLE (id uuid, sort_at timestamptz, cost double precision) LANGUAGE sql STABLE AS $$
  (SELECT j.id, j.sort_at, coalesce(j.cost, 1) FROM {schema}.jobs AS j
  WHERE gate_lane = '' AND j.queue = gate_queue AND j.state = 'ready' AND j.lane IS NULL
    AND (j.sort_at, j.id) > (after_at, after_id) AND (j.batch_id IS NULL OR j.batch_id <> ALL(cancelling))
  ORDER BY j.sort_at, j.id LIMIT 1)
  UNION ALL
  (SELECT j.id, j.sort_at, coalesce(j.cost, 1) FROM {schema}.jobs AS j
  WHERE gate_lane <> '' AND j.queue = gate_queue AND j.state = 'ready' AND j.lane = gate_lane
    AND (j.sort_at, j.id) > (after_at, after_id) AND (j.batch_id IS NULL OR j.batch_id <> ALL(cancelling))
  ORDER BY j.sort_at, j.id LIMIT 1)
$$;

CREATE TYPE {schema}.admitted AS (id uuid, task text, queue text, args json, attempt int, failures smallint,
  crashes smallint, max_attempts smallint, timeout interval, cancel_requested boolean, batch_id uuid, ordinal int,
  sort_at timestamptz, refused_by text, again_at timestamptz, place bigint, gated boolean, look_in interval, spent text, short text,
  run_id uuid, node text);

-- Admission: the gate is locked, then what the waiting lanes need, and only then is counted: each in a statement of its
-- own, and so with a snapshot of its own. What differs only between jobs of one share is done with two levels of heaps:
-- `heap` holds the numbers of nodes, lanes 1 to n in one region per share, then the shares, n + 1 and up, in the last
-- region, each region in the order of (tag, sort_at, id). A node of a share has the place of its first lane. Starting a
-- job only takes room, and so does reserving: the first job that lacks nothing but units has those that it will need kept
-- from all who come after it. So a lane that is held stays so to the end. The last row has no job: it says the rest.
CREATE FUNCTION {schema}.admit_jobs(claim_session uuid, claim_queue text, claim_limit int, claim_now timestamptz,
  grants jsonb)
RETURNS SETOF {schema}.admitted LANGUAGE plpgsql AS $$
#variable_conflict use_variable
DECLARE
  answer {schema}.admitted;
  clock timestamptz;
  cancelling uuid[];
  keys jsonb; key_caps jsonb;
  virtual_time float8;
  -- by lane; tags, ats and ids go on with the shares
  lanes text[]; fair_keys text[]; rests text[]; costs float8[]; key_of int[]; key_used int[]; key_limits int[]; rest_of int[];
  tags float8[]; ats timestamptz[]; ids uuid[];
  heap int[];
  lane_count int;
  -- by share
  bases int[]; sizes int[]; weights float8[]; moved boolean[];
  share_count int;
  -- by rest: what its lanes need are the needs from firsts[rest] on, up to firsts[rest + 1]
  rest_names text[]; firsts int[]; held_rests boolean[];
  -- by need
  need_rests int[]; need_kinds text[]; need_names text[]; need_of int[]; need_units float8[];
  -- by what is needed
  kinds text[]; names text[]; numbers jsonb;
  rooms float8[]; bursts float8[]; flows float8[]; again_ats timestamptz[]; refusing boolean[]; taken float8[];
  reserved float8[]; shorts float8[];
  started uuid[] := '{}'; refusers int[] := '{}'; probed int[] := '{}'; probes uuid[] := '{}';
  look_at timestamptz := 'infinity'; passes timestamptz; opens timestamptz; room float8; lack float8; wait float8;
  lane int; share int; rest int; refuser int; need int; held boolean; full_up boolean; lasting boolean; behind boolean; more boolean := false;
  units float8; base int; size int; parent int; child int; node int; id uuid; at timestamptz; next record;
BEGIN
  answer.gated := EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = claim_queue AND q.gated);
  IF NOT answer.gated OR NOT EXISTS (SELECT FROM {schema}.jobs AS j
      WHERE j.queue = claim_queue AND j.state = 'ready' AND j.lane IS NOT NULL)
    AND NOT EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.queue = claim_queue AND j.state = 'ready' AND j.lane IS NULL)
  THEN
    RETURN NEXT answer;
    RETURN;
  END IF;

  INSERT INTO {schema}.gates (queue) SELECT claim_queue
  WHERE NOT EXISTS (SELECT FROM {schema}.gates AS g WHERE g.queue = claim_queue) ON CONFLICT (queue) DO NOTHING;
  SELECT g.virtual INTO virtual_time FROM {schema}.gates AS g WHERE g.queue = claim_queue FOR UPDATE;
  IF virtual_time >= 1073741824 THEN
    -- Only differences of tags say anything; as large numbers they would soon be all the same.
    UPDATE {schema}.shares AS x SET finish = greatest(0, x.finish - virtual_time)
    WHERE x.queue = claim_queue AND x.finish IS NOT NULL;
    UPDATE {schema}.gates AS g SET virtual = 0 WHERE g.queue = claim_queue;
    virtual_time := 0;
  END IF;
  clock := coalesce(claim_now, clock_timestamp());
  cancelling := ARRAY(SELECT b.id FROM {schema}.batches AS b WHERE b.state = 'cancelling');
  keys := coalesce((SELECT jsonb_object_agg(h.key, h.used) FROM {schema}.held_keys(claim_queue) AS h), '{}');
  key_caps := {schema}.key_caps(claim_queue);

  SELECT count(*), array_agg(w.lane), array_agg(w.fair_key), array_agg(w.rest), array_agg(w.cost), array_agg(w.key_of),
    array_agg(w.used), array_agg(w.key_limit), array_agg(w.id), array_agg(w.sort_at), array_agg(0::float8)
  INTO lane_count, lanes, fair_keys, rests, costs, key_of, key_used, key_limits, ids, ats, tags
  FROM (
    SELECT n.*, (CASE WHEN n.key IS NULL THEN 0 ELSE min(n.number) OVER (PARTITION BY n.key) END)::int AS key_of
    FROM (
      SELECT u.*, row_number() OVER (ORDER BY u.fair_key, u.sort_at, u.id) AS number
      FROM (SELECT l.lane, l.fair_key, l.key, coalesce((key_caps ->> l.key)::int, l.key_limit) AS key_limit, l.rest, l.id,
          l.sort_at, l.cost, coalesce((keys ->> l.key)::int, 0) AS used
        FROM {schema}.waiting_lanes(claim_queue, cancelling) AS l) AS u
      WHERE u.key IS NULL OR u.used < u.key_limit) AS n
    ORDER BY n.number) AS w
  WHERE EXISTS (SELECT FROM {schema}.sessions AS s WHERE s.id = claim_session AND s.expires_at > clock)
    AND NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = claim_queue AND q.paused);

  IF lane_count = 0 THEN
    RETURN NEXT answer;
    RETURN;
  END IF;

  SELECT count(*), array_agg(s.first), array_agg(s.size), array_agg(s.weight), array_agg(false), tags || array_agg(s.tag),
    ats || array_agg(ats[s.first]), ids || array_agg(ids[s.first])
  INTO share_count, bases, sizes, weights, moved, tags, ats, ids
  FROM (
    SELECT f.first, f.size, coalesce(x.weight, 1) AS weight, greatest(virtual_time, x.finish) AS tag
    FROM (SELECT k.fair_key, min(k.number)::int AS first, count(*)::int AS size
      FROM unnest(fair_keys) WITH ORDINALITY AS k (fair_key, number) GROUP BY k.fair_key) AS f
    LEFT JOIN LATERAL (SELECT k.weight, k.finish FROM {schema}.shares AS k
      WHERE k.queue = claim_queue AND k.fair_key = f.fair_key OFFSET 0) AS x ON true
    ORDER BY tag, ats[f.first], ids[f.first]) AS s;
  heap := ARRAY(SELECT generate_series(1, lane_count + share_count));

  rest_names := ARRAY(SELECT DISTINCT r.rest FROM unnest(rests) AS r (rest));
  numbers := (SELECT jsonb_object_agg(r.rest, r.number) FROM unnest(rest_names) WITH ORDINALITY AS r (rest, number));
  rest_of := ARRAY(SELECT (numbers ->> r.rest)::int FROM unnest(rests) WITH ORDINALITY AS r (rest, number) ORDER BY r.number);
  held_rests := array_fill(false, ARRAY[cardinality(rest_names)]);
  SELECT array_agg(r.number), array_agg(n.kind), array_agg(n.name), array_agg(coalesce(n.units, -1))
  INTO need_rests, need_kinds, need_names, need_units
  FROM unnest(rest_names) WITH ORDINALITY AS r (rest, number)
    CROSS JOIN LATERAL {schema}.gate_needs(claim_queue, r.rest::jsonb) AS n;
  SELECT array_agg(d.kind), array_agg(d.name) INTO kinds, names
  FROM (SELECT DISTINCT n.kind, n.name FROM unnest(need_kinds, need_names) AS n (kind, name)) AS d;
  PERFORM FROM {schema}.limits AS l WHERE l.key = ANY(names) ORDER BY l.key COLLATE "C" FOR UPDATE;
  PERFORM FROM {schema}.rates AS r WHERE r.name = ANY(names) AND grants IS NULL ORDER BY r.name FOR UPDATE;
  PERFORM FROM {schema}.breakers AS b WHERE b.key = ANY(names) ORDER BY b.key FOR UPDATE;
  clock := coalesce(claim_now, clock_timestamp());
  -- A bucket that was written ahead of the clock stands at now: the clock was set back.
  UPDATE {schema}.rates AS r SET at = clock WHERE r.name = ANY(names) AND r.at > clock AND grants IS NULL;

  SELECT array_agg(g.kind), array_agg(g.name), array_agg(g.room), array_agg(g.burst), array_agg(g.per_second),
    array_agg(g.again_at), array_agg(g.refuses), array_agg(0::float8), array_agg(0::float8), array_agg(0::float8),
    jsonb_object_agg(g.kind || ' ' || g.name, g.number) FILTER (WHERE g.kind IS NOT NULL)
  INTO kinds, names, rooms, bursts, flows, again_ats, refusing, taken, reserved, shorts, numbers
  FROM (SELECT s.*, row_number() OVER (ORDER BY s.kind, s.name COLLATE "C") AS number
    FROM {schema}.gate_stands(kinds, names, clock, grants) AS s ORDER BY number) AS g;
  SELECT array_agg(d.rest), array_agg(d.need), array_agg(d.units) INTO need_rests, need_of, need_units FROM (
    SELECT n.rest, (numbers ->> (n.kind || ' ' || n.name))::int AS need, n.units
    FROM unnest(need_rests, need_kinds, need_names, need_units) AS n (rest, kind, name, units)
    WHERE numbers ? (n.kind || ' ' || n.name) ORDER BY n.rest, need) AS d;
  firsts := ARRAY(SELECT 1 + (sum(sum(c.count)) OVER (ORDER BY c.rest))::int FROM (
    SELECT r.rest, 0 AS count FROM generate_series(0, cardinality(rest_names)) AS r (rest)
    UNION ALL
    SELECT n.rest, 1 FROM unnest(need_rests) AS n (rest)) AS c GROUP BY c.rest ORDER BY c.rest);

  WHILE share_count > 0 LOOP
    share := heap[lane_count + 1] - lane_count;
    lane := heap[bases[share]];
    rest := rest_of[lane];
    held := held_rests[rest] OR key_of[lane] > 0 AND key_used[key_of[lane]] >= key_limits[lane];
    IF NOT held THEN
      -- A refused job takes room under its caps, but waits neither for a bucket nor for another breaker.
      refuser := 0; full_up := false; lasting := false; behind := false; opens := '-infinity'; wait := 0;
      FOR need IN firsts[rest] .. firsts[rest + 1] - 1 LOOP
        node := need_of[need];
        units := CASE WHEN need_units[need] < 0 THEN costs[lane] ELSE need_units[need] END;
        passes := {schema}.passes_at(units, rooms[node] - reserved[node], bursts[node], flows[node], again_ats[node], clock);
        CONTINUE WHEN passes = '-infinity';
        held := true;
        IF refusing[node] AND refuser = 0 THEN
          refuser := node;
        END IF;
        IF kinds[node] <> 'rate' OR again_ats[node] > clock THEN
          full_up := full_up OR kinds[node] = 'running';
          opens := greatest(opens, CASE kinds[node] WHEN 'rate' THEN again_ats[node] ELSE passes END);
        ELSE
          room := rooms[node] - reserved[node];
          behind := behind OR reserved[node] > 0;
          lasting := lasting OR reserved[node] > 0 AND (need_units[need] >= 0 OR room <= 0);
          wait := greatest(wait, {schema}.wait_of(units, room, bursts[node], flows[node]));
        END IF;
      END LOOP;
      IF refuser > 0 THEN
        held := full_up;
      ELSIF held THEN
        IF opens > '-infinity' THEN
          look_at := least(look_at, opens);
          lasting := true;
        ELSIF NOT behind THEN
          -- It lacks nothing but units, and nobody who comes before it does: those that it needs are kept for it.
          look_at := least(look_at, CASE WHEN grants IS NULL THEN clock + make_interval(secs => wait) ELSE 'infinity' END);
          lasting := true;
          FOR need IN firsts[rest] .. firsts[rest + 1] - 1 LOOP
            node := need_of[need];
            CONTINUE WHEN kinds[node] <> 'rate' OR rooms[node] = 'Infinity';
            units := CASE WHEN need_units[need] < 0 THEN costs[lane] ELSE need_units[need] END;
            lack := {schema}.wait_of(units, rooms[node] - reserved[node], bursts[node], flows[node]);
            IF grants IS NOT NULL AND lack > 0 THEN
              shorts[node] := units;
            END IF;
            -- What flows in until the job can start need not be kept for it.
            room := CASE WHEN lack = wait THEN units ELSE greatest(0, least(units, bursts[node]) - flows[node] * wait) END;
            reserved[node] := reserved[node] + room;
          END LOOP;
        END IF;
        held_rests[rest] := lasting AND NOT EXISTS (
          SELECT FROM generate_series(firsts[rest], firsts[rest + 1] - 1) AS n WHERE refusing[need_of[n]]);
      END IF;
    END IF;

    IF held THEN
      next := NULL;
    ELSIF cardinality(started) = claim_limit THEN
      more := true;
      EXIT;
    ELSE
      PERFORM FROM {schema}.jobs AS j WHERE j.id = ids[lane] AND j.state = 'ready' FOR UPDATE SKIP LOCKED;
      IF FOUND THEN
        started := started || ids[lane];
        refusers := refusers || refuser;
        virtual_time := tags[lane_count + share];
        tags[lane_count + share] := virtual_time + costs[lane] / weights[share];
        moved[share] := true;
        node := key_of[lane];
        IF node > 0 THEN
          size := key_used[node] + 1;
          key_used[node] := size;
        END IF;
        FOR need IN firsts[rest] .. firsts[rest + 1] - 1 LOOP
          node := need_of[need];
          CONTINUE WHEN refuser > 0 AND kinds[node] <> 'running';
          units := CASE WHEN need_units[need] < 0 THEN costs[lane] ELSE need_units[need] END;
          taken[node] := taken[node] + units;
          IF kinds[node] = 'breaker' AND rooms[node] < 'Infinity' THEN
            probed := probed || node;
            probes := probes || ids[lane];
          END IF;
          rooms[node] := rooms[node] - units;
        END LOOP;
      END IF;
      SELECT w.* INTO next FROM {schema}.next_job(claim_queue, lanes[lane], ats[lane], ids[lane], cancelling) AS w;
    END IF;

    IF next IS NULL THEN
      size := sizes[share] - 1;
      sizes[share] := size;
      node := heap[bases[share] + size];
      heap[bases[share]] := node;
    ELSE
      ids[lane] := next.id; ats[lane] := next.sort_at; costs[lane] := next.cost;
    END IF;
    FOR region IN 1 .. 2 LOOP
      IF region = 1 THEN
        base := bases[share]; size := sizes[share];
      ELSE
        IF sizes[share] = 0 THEN
          node := heap[lane_count + share_count];
          heap[lane_count + 1] := node;
          share_count := share_count - 1;
        ELSE
          node := heap[bases[share]]; id := ids[node]; at := ats[node];
          ids[lane_count + share] := id; ats[lane_count + share] := at;
        END IF;
        base := lane_count + 1; size := share_count;
      END IF;
      parent := 0;
      LOOP
        child := 2 * parent + 1;
        EXIT WHEN child >= size;
        IF child + 1 < size AND (tags[heap[base + child + 1]], ats[heap[base + child + 1]], ids[heap[base + child + 1]])
            < (tags[heap[base + child]], ats[heap[base + child]], ids[heap[base + child]]) THEN
          child := child + 1;
        END IF;
        EXIT WHEN (tags[heap[base + parent]], ats[heap[base + parent]], ids[heap[base + parent]])
          <= (tags[heap[base + child]], ats[heap[base + child]], ids[heap[base + child]]);
        node := heap[base + parent]; need := heap[base + child];
        heap[base + parent] := need; heap[base + child] := node;
        parent := child;
      END LOOP;
    END LOOP;
  END LOOP;

  answer.short := (SELECT json_object_agg(n.name, n.short) FROM unnest(names, shorts) AS n (name, short)
    WHERE n.short > 0);
  answer.look_in := CASE WHEN more THEN interval '0' ELSE nullif(look_at, 'infinity') - clock END;
  IF started = '{}' THEN
    -- Nothing to be durable: the locks alone must not make this wait for the disk.
    PERFORM set_config('synchronous_commit', 'off', true);
    RETURN NEXT answer;
    RETURN;
  END IF;

  RETURN QUERY UPDATE {schema}.jobs AS j
  SET state = 'running', session = claim_session, attempt = j.attempt + 1, started_at = clock,
    lane = coalesce(j.lane, '{}')
  WHERE j.id = ANY(started)
  RETURNING j.id, j.task, j.queue, j.args, j.attempt, j.failures, j.crashes, j.max_attempts, j.timeout,
    j.cancel_requested, j.batch_id, j.ordinal, j.sort_at,
    names[refusers[array_position(started, j.id)]],
    nullif(again_ats[refusers[array_position(started, j.id)]], '-infinity'), array_position(started, j.id)::bigint,
    NULL::boolean, NULL::interval, NULL::text, NULL::text, j.run_id, j.node;
  IF more OR EXISTS (SELECT FROM {schema}.waiting_lanes(claim_queue, cancelling)) THEN
    INSERT INTO {schema}.shares AS x (queue, fair_key, finish)
    SELECT claim_queue, fair_keys[bases[m.share]], tags[lane_count + m.share]
    FROM unnest(moved) WITH ORDINALITY AS m (moved, share) WHERE m.moved
    ON CONFLICT (queue, fair_key) DO UPDATE SET finish = excluded.finish;
  ELSE
    -- The busy period is over. A tag beside a weight may stay: it lies behind the virtual time.
    virtual_time := greatest((SELECT max(t.tag) FROM unnest(tags) AS t (tag)),
      (SELECT max(x.finish) FROM {schema}.shares AS x WHERE x.queue = claim_queue));
    DELETE FROM {schema}.shares AS x WHERE x.queue = claim_queue AND x.weight IS NULL;
  END IF;
  UPDATE {schema}.gates AS g SET virtual = virtual_time WHERE g.queue = claim_queue;
  UPDATE {schema}.rates AS r SET level = rooms[n.number], at = clock
  FROM unnest(kinds, names, taken) WITH ORDINALITY AS n (kind, name, taken, number)
  WHERE r.name = n.name AND n.kind = 'rate' AND n.taken > 0 AND bursts[n.number] < 'Infinity';
  UPDATE {schema}.breakers AS b SET state = 'half_open', probe_job = p.job_id, version = version + 1,
    probe_attempt = (SELECT j.attempt FROM {schema}.jobs AS j WHERE j.id = p.job_id)
  FROM unnest(probed, probes) AS p (number, job_id)
  WHERE b.key = names[p.number];
  answer.spent := (SELECT json_object_agg(n.name, n.taken) FROM unnest(kinds, names, taken) AS n (kind, name, taken)
    WHERE n.kind = 'rate' AND n.taken > 0 AND grants IS NOT NULL);
  RETURN NEXT answer;
END
$$;

-- End live calls of sessions that are not alive: prepared ones are removed, others orphaned at their estimate.
CREATE FUNCTION {schema}.lose_calls(dead uuid[], clock timestamptz) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  ended bigint;
BEGIN
  PERFORM FROM {schema}.calls AS c WHERE c.id = ANY(dead) ORDER BY c.id FOR UPDATE;
  WITH lost AS MATERIALIZED (
    SELECT c.id, c.state FROM {schema}.calls AS c
    WHERE c.id = ANY(dead) AND c.state IN ('prepared', 'sent', 'received')
      AND NOT EXISTS (SELECT FROM {schema}.sessions AS s WHERE s.id = c.session AND s.expires_at > clock)
  ), removed AS (
    DELETE FROM {schema}.calls AS c USING lost AS l WHERE c.id = l.id AND l.state = 'prepared'
  ), orphans AS (
    UPDATE {schema}.calls AS c SET state = 'orphaned', ended_at = clock, input_tokens = c.prompt_tokens,
      output_tokens = c.most_tokens, cost_nano = coalesce(c.most_nano, 0), unpriced = (c.most_nano IS NULL)::int
    FROM lost AS l WHERE c.id = l.id AND l.state <> 'prepared'
    RETURNING c.scopes, c.day, c.input_tokens + c.output_tokens AS tokens, c.cost_nano, c.unpriced
  ), counted AS (
    INSERT INTO {schema}.spend AS s (scope, error, day, settled, orphaned, answered, input_tokens, output_tokens,
      cached_tokens, cost_nano, unpriced, lost_tokens, lost_nano, lost_unpriced)
    SELECT u.scope COLLATE "C", '', o.day, 0, count(*), 0, 0, 0, 0, 0, 0, sum(o.tokens), sum(o.cost_nano), sum(o.unpriced)
    FROM orphans AS o, unnest(o.scopes) AS u (scope)
    GROUP BY 1, 3 ORDER BY 1, 3
    ON CONFLICT (scope, day, error) DO UPDATE SET orphaned = s.orphaned + excluded.orphaned,
      lost_tokens = s.lost_tokens + excluded.lost_tokens, lost_nano = s.lost_nano + excluded.lost_nano,
      lost_unpriced = s.lost_unpriced + excluded.lost_unpriced
  )
  SELECT count(*) INTO ended FROM lost;
  RETURN ended;
END
$$;

-- Open model calls, each as if those before it in the list had come alone: against stored answers, calls of the same key,
-- the limits of pools, and budgets. What rivals contend for is locked first and looked at by the statements after that:
-- one that locks and counts at once would count what was there before it waited.
CREATE FUNCTION {schema}.open_calls(opener uuid, ids uuid[], keys text[], pools text[], providers text[], models text[],
  purposes text[], jobs uuid[], batches uuid[], runs uuid[], tenants text[], scope_lists text[], prompts bigint[],
  mosts bigint[], most_nanos bigint[], sends boolean[], freshes boolean[], flight_limits int[], day_limits int[],
  clock timestamptz)
RETURNS TABLE (number int, verdict text, reply text, refuser text, spooled text[]) LANGUAGE plpgsql AS $$
DECLARE
  live CONSTANT text[] := ARRAY['prepared', 'sent', 'received'];
  today date;
  limited text[];
  budgeted text[];
  states text[];
  replies text[];
  held boolean[];
  dead uuid[];
  lasting boolean := false;
  flights bigint[];
  dailies bigint[];
  nano_rooms bigint[];
  token_rooms bigint[];
  verdicts text[] := '{}';
  refusers text[] := '{}';
  opened_ids uuid[] := '{}';
  opened_keys text[] := '{}';
  opened int[] := '{}';
  scopes text[];
  place int;
BEGIN
  budgeted := ARRAY(SELECT b.scope FROM {schema}.budgets AS b WHERE b.scope = ANY(ARRAY(
    SELECT u.scope FROM unnest(scope_lists) AS l (list), unnest(string_to_array(l.list, E'\x1f')) AS u (scope)))
    ORDER BY b.scope);
  limited := ARRAY(SELECT DISTINCT w.pool FROM unnest(pools, flight_limits, day_limits) AS w (pool, flight, day)
    WHERE w.flight IS NOT NULL OR w.day IS NOT NULL);
  -- Rivals wait here, in one order; what is looked at from now on is what they left.
  PERFORM pg_advisory_xact_lock(l.lock) FROM (
    SELECT DISTINCT hashtextextended(n.name, 0) AS lock FROM (
      SELECT '{schema} call ' || k.key FROM unnest(keys) AS k (key)
      UNION ALL SELECT '{schema} pool ' || p.pool FROM unnest(limited) AS p (pool)
      UNION ALL SELECT '{schema} budget ' || b.scope FROM unnest(budgeted) AS b (scope)) AS n (name)
    ORDER BY lock OFFSET 0) AS l;
  clock := coalesce(clock, clock_timestamp());
  today := (clock AT TIME ZONE 'UTC')::date;

  LOOP
    SELECT array_agg(o.state ORDER BY w.number), array_agg(a.answer ORDER BY w.number),
      array_agg(h.id <> w.id ORDER BY w.number),
      array_agg(h.id) FILTER (WHERE o.id IS NULL AND a.key IS NULL AND h.id IS NOT NULL AND s.id IS NULL)
    INTO states, replies, held, dead
    FROM unnest(ids, keys, freshes) WITH ORDINALITY AS w (id, key, fresh, number)
      LEFT JOIN {schema}.calls AS o ON o.id = w.id
      LEFT JOIN {schema}.calls AS h ON h.key = w.key AND h.state IN ('prepared', 'sent', 'received')
      LEFT JOIN {schema}.sessions AS s ON s.id = h.session AND s.expires_at > clock
      LEFT JOIN {schema}.answers AS a ON a.key = w.key AND NOT w.fresh;
    EXIT WHEN dead IS NULL;
    lasting := true;
    PERFORM {schema}.lose_calls(dead, clock);
  END LOOP;

  IF array_remove(states, NULL) <> '{}' THEN
    -- After a lost answer: they are here already.
    lasting := true;
    DELETE FROM {schema}.calls AS c USING unnest(ids, states, replies) AS w (id, state, reply)
    WHERE c.id = w.id AND w.state = ANY(live) AND w.reply IS NOT NULL;
    UPDATE {schema}.calls AS c SET session = opener,
      state = CASE WHEN w.send AND c.state = 'prepared' THEN 'sent' ELSE c.state END
    FROM unnest(ids, states, replies, sends) AS w (id, state, reply, send)
    WHERE c.id = w.id AND w.state = ANY(live) AND w.reply IS NULL;
  END IF;

  IF limited <> '{}' THEN
    SELECT array_agg(f.calls ORDER BY l.number), array_agg(f.opened_today + e.calls ORDER BY l.number)
    INTO flights, dailies
    FROM unnest(limited) WITH ORDINALITY AS l (pool, number)
      CROSS JOIN LATERAL (SELECT count(*) AS calls, count(*) FILTER (WHERE c.day = today) AS opened_today
        FROM {schema}.calls AS c WHERE c.pool = l.pool AND c.state IN ('prepared', 'sent', 'received')) AS f
      CROSS JOIN LATERAL (SELECT coalesce(sum(s.settled + s.orphaned), 0)::bigint AS calls
        FROM {schema}.spend AS s WHERE s.scope = 'pool:' || l.pool AND s.day = today) AS e;
  END IF;
  IF budgeted <> '{}' THEN
    SELECT array_agg(b.cost_nano - p.nano - coalesce(r.nano, 0) ORDER BY n.number),
      array_agg(b.tokens - p.tokens - coalesce(r.tokens, 0) ORDER BY n.number)
    INTO nano_rooms, token_rooms
    FROM unnest(budgeted) WITH ORDINALITY AS n (scope, number)
      LEFT JOIN {schema}.budgets AS b ON b.scope = n.scope
      CROSS JOIN LATERAL (SELECT coalesce(sum(s.cost_nano + s.lost_nano), 0)::bigint AS nano,
          coalesce(sum(s.input_tokens + s.output_tokens + s.lost_tokens), 0)::bigint AS tokens
        FROM {schema}.spend AS s WHERE s.scope = n.scope AND (n.scope <> 'day' OR s.day = today)) AS p
      LEFT JOIN (SELECT u.scope, sum(c.most_nano)::bigint AS nano, sum(c.prompt_tokens + c.most_tokens)::bigint AS tokens
        FROM {schema}.calls AS c, unnest(c.scopes) AS u (scope)
        WHERE c.state IN ('prepared', 'sent', 'received') AND u.scope = ANY(budgeted)
          AND (u.scope <> 'day' OR c.day = today)
        GROUP BY u.scope) AS r ON r.scope = n.scope;
  END IF;

  FOR i IN 1 .. cardinality(ids) LOOP
    verdict := NULL;
    refuser := NULL;
    IF replies[i] IS NOT NULL THEN
      verdict := 'answered';
    ELSIF states[i] IS NOT NULL THEN
      verdict := CASE WHEN states[i] = ANY(live) THEN 'opened' ELSE 'ended' END;
    ELSIF held[i] THEN
      verdict := 'held';
    ELSE
      place := array_position(opened_keys, keys[i]);
      IF place IS NOT NULL THEN
        verdict := CASE WHEN opened_ids[place] = ids[i] THEN 'opened' ELSE 'held' END;
      END IF;
    END IF;
    IF verdict IS NULL THEN
      place := array_position(limited, pools[i]);
      IF flights[place] >= flight_limits[i] THEN
        verdict := 'pool_full';
      ELSIF dailies[place] >= day_limits[i] THEN
        verdict := 'day_full';
      ELSIF budgeted <> '{}' THEN
        scopes := string_to_array(scope_lists[i], E'\x1f');
        FOR b IN 1 .. cardinality(budgeted) LOOP
          IF budgeted[b] = ANY(scopes)
              AND (nano_rooms[b] < coalesce(most_nanos[i], 0) OR token_rooms[b] < prompts[i] + mosts[i]) THEN
            verdict := 'over_budget';
            refuser := budgeted[b];
            EXIT;
          END IF;
        END LOOP;
      END IF;
      IF verdict IS NULL THEN
        verdict := 'opened';
        opened := opened || i;
        opened_ids := opened_ids || ids[i];
        opened_keys := opened_keys || keys[i];
        lasting := lasting OR sends[i];
        IF place IS NOT NULL THEN
          flights[place] := flights[place] + 1;
          dailies[place] := dailies[place] + 1;
        END IF;
        FOR b IN 1 .. cardinality(budgeted) LOOP
          IF budgeted[b] = ANY(scopes) THEN
            nano_rooms[b] := nano_rooms[b] - coalesce(most_nanos[i], 0);
            token_rooms[b] := token_rooms[b] - prompts[i] - mosts[i];
          END IF;
        END LOOP;
      END IF;
    END IF;
    verdicts := verdicts || verdict;
    refusers := refusers || refuser;
  END LOOP;

  IF opened <> '{}' THEN
    INSERT INTO {schema}.calls (id, session, job_id, batch_id, run_id, opened_at, prompt_tokens, most_tokens, most_nano,
      day, state, key, pool, provider, model, purpose, tenant, scopes)
    SELECT w.id, opener, w.job, w.batch, w.run, clock, w.prompt, w.most, w.nano, today,
      CASE WHEN w.send THEN 'sent' ELSE 'prepared' END, w.key, w.pool, w.provider, w.model, w.purpose, w.tenant,
      string_to_array(w.scope_list, E'\x1f')
    FROM unnest(ids, keys, pools, providers, models, purposes, jobs, batches, runs, tenants, scope_lists, prompts, mosts,
        most_nanos, sends) WITH ORDINALITY
      AS w (id, key, pool, provider, model, purpose, job, batch, run, tenant, scope_list, prompt, most, nano, send, number)
    WHERE w.number = ANY(opened);
  END IF;
  IF EXISTS (SELECT FROM {schema}.call_items AS i WHERE i.key = ANY(opened_keys)) THEN
    DELETE FROM {schema}.call_items AS i
    USING (SELECT o.key, o.number, row_number() OVER (PARTITION BY o.key ORDER BY o.number) - 1 AS place
      FROM {schema}.call_items AS o WHERE o.key = ANY(opened_keys)) AS n
    WHERE i.key = n.key AND i.number = n.number AND n.number <> n.place;
  END IF;
  IF NOT lasting THEN
    -- A call that is only prepared may be lost with the server: it was not sent, and cannot be any more.
    PERFORM set_config('synchronous_commit', 'off', true);
  END IF;
  RETURN QUERY SELECT w.number::int, w.verdict, w.reply, w.refuser,
    CASE WHEN w.verdict = 'opened' THEN
      ARRAY(SELECT i.item FROM {schema}.call_items AS i WHERE i.key = w.key ORDER BY i.number) END
  FROM unnest(verdicts, replies, refusers, keys) WITH ORDINALITY AS w (verdict, reply, refuser, key, number);
END
$$;

-- Record how calls ended, write-once, keep their answers, and add what they used to the sums of their scopes. The sums
-- come last, in one order: who waits there waits for one commit.
CREATE FUNCTION {schema}.settle_calls(ids uuid[], states text[], keys text[], pools text[], providers text[],
  models text[], purposes text[], jobs uuid[], batches uuid[], runs uuid[], tenants text[], scope_lists text[],
  prompts bigint[], mosts bigint[], most_nanos bigint[], replies text[], replaces boolean[], inputs bigint[],
  outputs bigint[], cacheds bigint[], answereds int[], costs bigint[], unpriceds int[], tables text[], faults text[],
  request_ids text[], clock timestamptz)
RETURNS TABLE (number int, stands boolean, reply text) LANGUAGE plpgsql AS $$
DECLARE
  given text[] := ARRAY(SELECT DISTINCT w.key FROM unnest(keys, replies) AS w (key, reply) WHERE w.reply IS NOT NULL);
  replaced text[];
BEGIN
  clock := coalesce(clock, clock_timestamp());
  PERFORM FROM {schema}.calls AS c WHERE c.id = ANY(ids) ORDER BY c.id FOR UPDATE;
  IF given <> '{}' THEN
    replaced := ARRAY(SELECT w.key FROM unnest(ids, keys, replies, replaces) AS w (id, key, reply, replaces)
      WHERE w.replaces AND w.reply IS NOT NULL
        AND NOT EXISTS (SELECT FROM {schema}.calls AS c WHERE c.id = w.id AND c.state = 'settled'));
    -- An answer that stands is locked, though not written: it cannot be pruned before it is read below.
    INSERT INTO {schema}.answers AS a (key, answer, created_at)
    SELECT DISTINCT ON (w.key) w.key, w.reply, clock
    FROM unnest(keys, replies, replaces) WITH ORDINALITY AS w (key, reply, replaces, number)
      CROSS JOIN LATERAL (SELECT w.replaces AND w.key = ANY(replaced) AS late) AS l
    WHERE w.reply IS NOT NULL
    ORDER BY w.key, l.late DESC, CASE WHEN l.late THEN - w.number ELSE w.number END
    ON CONFLICT (key) DO UPDATE SET answer = excluded.answer, created_at = excluded.created_at
      WHERE excluded.key = ANY(replaced);
    DELETE FROM {schema}.call_items AS i WHERE i.key = ANY(given);
  END IF;

  WITH said AS MATERIALIZED (
    SELECT DISTINCT ON (w.id) w.* FROM unnest(ids, states, keys, pools, providers, models, purposes, jobs, batches, runs,
      tenants, scope_lists, prompts, mosts, most_nanos, inputs, outputs, cacheds, answereds, costs, unpriceds, tables,
      faults, request_ids) WITH ORDINALITY
      AS w (id, state, key, pool, provider, model, purpose, job, batch, run, tenant, scope_list, prompt, most, nano,
        input, output, cached, answered, cost, unpriced, priced_by, fault, request_id, number)
    ORDER BY w.id, w.state = 'orphaned', w.number
  ), orphans AS MATERIALIZED (
    SELECT c.* FROM {schema}.calls AS c WHERE c.id = ANY(ids) AND c.state = 'orphaned'
  ), removed AS (
    DELETE FROM {schema}.calls AS c WHERE c.id = ANY(ids) AND c.state = 'prepared'
  ), ended AS (
    UPDATE {schema}.calls AS c SET state = s.state, ended_at = clock, input_tokens = s.input, output_tokens = s.output,
      cached_tokens = s.cached, answered = s.answered, cost_nano = s.cost, unpriced = s.unpriced,
      priced_by = s.priced_by, error = s.fault, request_id = s.request_id
    FROM said AS s
    WHERE c.id = s.id AND (c.state IN ('sent', 'received') OR c.state = 'orphaned' AND s.state = 'settled')
    RETURNING c.*
  ), added AS (
    INSERT INTO {schema}.calls AS c (id, job_id, batch_id, run_id, opened_at, ended_at, prompt_tokens, most_tokens,
      most_nano, input_tokens, output_tokens, cached_tokens, cost_nano, answered, unpriced, day, state, key, pool,
      provider, model, purpose, tenant, scopes, priced_by, error, request_id)
    SELECT s.id, s.job, s.batch, s.run, clock, clock, s.prompt, s.most, s.nano, s.input, s.output, s.cached, s.cost,
      s.answered, s.unpriced, (clock AT TIME ZONE 'UTC')::date, s.state, s.key, s.pool, s.provider, s.model, s.purpose,
      s.tenant, string_to_array(s.scope_list, E'\x1f'), s.priced_by, s.fault, s.request_id
    FROM said AS s
    WHERE NOT EXISTS (SELECT FROM {schema}.calls AS c WHERE c.id = s.id)
      AND (s.input, s.output, s.cached, s.answered, s.cost, s.unpriced) <> (0, 0, 0, 0, 0, 0)
    ORDER BY s.id
    ON CONFLICT (id) DO NOTHING
    RETURNING c.*
  ), changes AS (
    SELECT 1 AS sign, e.* FROM ended AS e
    UNION ALL SELECT 1, a.* FROM added AS a
    UNION ALL SELECT -1, o.* FROM orphans AS o JOIN ended AS e ON e.id = o.id
  )
  INSERT INTO {schema}.spend AS s (scope, error, day, settled, orphaned, answered, input_tokens, output_tokens,
    cached_tokens, cost_nano, unpriced, lost_tokens, lost_nano, lost_unpriced)
  SELECT u.scope COLLATE "C", c.error COLLATE "C", c.day, sum(c.sign * t.paid), sum(c.sign * t.lost),
    sum(c.sign * t.paid * c.answered), sum(c.sign * t.paid * c.input_tokens), sum(c.sign * t.paid * c.output_tokens),
    sum(c.sign * t.paid * c.cached_tokens), sum(c.sign * t.paid * c.cost_nano), sum(c.sign * t.paid * c.unpriced),
    sum(c.sign * t.lost * (c.input_tokens + c.output_tokens)), sum(c.sign * t.lost * c.cost_nano),
    sum(c.sign * t.lost * c.unpriced)
  FROM changes AS c CROSS JOIN LATERAL (SELECT (c.state = 'settled')::int AS paid, (c.state = 'orphaned')::int AS lost) AS t,
    unnest(c.scopes) AS u (scope)
  GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
  ON CONFLICT (scope, day, error) DO UPDATE SET settled = s.settled + excluded.settled,
    orphaned = s.orphaned + excluded.orphaned, answered = s.answered + excluded.answered,
    input_tokens = s.input_tokens + excluded.input_tokens, output_tokens = s.output_tokens + excluded.output_tokens,
    cached_tokens = s.cached_tokens + excluded.cached_tokens, cost_nano = s.cost_nano + excluded.cost_nano,
    unpriced = s.unpriced + excluded.unpriced, lost_tokens = s.lost_tokens + excluded.lost_tokens,
    lost_nano = s.lost_nano + excluded.lost_nano, lost_unpriced = s.lost_unpriced + excluded.lost_unpriced;

  RETURN QUERY SELECT w.number::int, a.answer IS NOT DISTINCT FROM w.reply,
    CASE WHEN a.answer IS DISTINCT FROM w.reply THEN a.answer END
  FROM unnest(keys, replies) WITH ORDINALITY AS w (key, reply, number)
    LEFT JOIN {schema}.answers AS a ON a.key = w.key;
END
$$;

-- Take names whose keys are free, or return those of others that came since the caller looked.
CREATE FUNCTION {schema}.claim_names(claimed text, owners uuid[], keys text[], shown text[], seen bigint)
RETURNS TABLE (newer boolean, key text, name text, owner uuid, "position" bigint) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  last bigint;
BEGIN
  INSERT INTO {schema}.name_scopes (scope) VALUES (claimed) ON CONFLICT (scope) DO NOTHING;
  SELECT s.last_position INTO last FROM {schema}.name_scopes AS s WHERE s.scope = claimed FOR UPDATE;
  RETURN QUERY SELECT true, n.key, n.name, n.owner, n.position FROM {schema}.known_names AS n
    WHERE n.scope = claimed AND n.position > seen AND n.owner <> ALL(owners);
  IF FOUND THEN
    RETURN;
  END IF;
  WITH wanted AS (
    SELECT DISTINCT ON (w.key) w.* FROM unnest(owners, keys, shown) WITH ORDINALITY AS w (owner, key, name, number)
    ORDER BY w.key, w.number
  ), free AS (
    SELECT w.owner, w.key, w.name, row_number() OVER (ORDER BY w.number) AS place FROM wanted AS w
    WHERE NOT EXISTS (SELECT FROM {schema}.known_names AS n
      WHERE n.scope = claimed AND md5(n.key) = md5(w.key) AND n.key = w.key)
  ), taken AS (
    INSERT INTO {schema}.known_names (owner, position, scope, key, name)
    SELECT f.owner, last + f.place, claimed, f.key, f.name FROM free AS f
    RETURNING position
  )
  UPDATE {schema}.name_scopes AS s SET last_position = t.last FROM (SELECT max(position) AS last FROM taken) AS t
  WHERE s.scope = claimed AND t.last IS NOT NULL;
  RETURN QUERY SELECT false, n.key, n.name, n.owner, n.position
  FROM unnest(owners, keys) AS w (owner, key)
    JOIN {schema}.known_names AS n
      ON n.scope = claimed AND md5(n.key) = md5(w.key) AND n.key = w.key AND n.owner = w.owner;
END
$$;

-- Append entries to a feed whose row it holds to the commit, so that numbers are given in the order of commits; fresh:
-- the entry is new. The time is that of the turn: of a feed none is before that of an earlier entry.
CREATE FUNCTION {schema}.append_entries(feed text, types text[], texts text[], keys text[], clock timestamptz)
RETURNS TABLE (seq bigint, fresh boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE
  held bigint;
  before bigint;
  last bigint;
  turn timestamptz;
  entry record;
BEGIN
  LOOP
    SELECT f.id, f.last_seq INTO held, last FROM {schema}.feeds AS f WHERE f.name = feed FOR UPDATE;
    EXIT WHEN FOUND;
    INSERT INTO {schema}.feeds (name, last_seq, oldest_at) VALUES (feed, 0, coalesce(clock, clock_timestamp()))
    ON CONFLICT (name) DO NOTHING;
  END LOOP;
  before := last;
  turn := coalesce(clock, clock_timestamp());
  FOR entry IN SELECT * FROM unnest(types, texts, keys) AS n (type, data, key) LOOP
    seq := NULL;
    IF entry.key IS NOT NULL THEN
      SELECT e.seq INTO seq FROM {schema}.feed_entries AS e WHERE e.feed_id = held AND e.key = entry.key;
    END IF;
    fresh := seq IS NULL;
    IF fresh THEN
      last := last + 1;
      seq := last;
      INSERT INTO {schema}.feed_entries (feed_id, seq, appended_at, type, key, data)
      VALUES (held, last, turn, entry.type, entry.key, entry.data::json);
    END IF;
    RETURN NEXT;
  END LOOP;
  IF last > before THEN
    UPDATE {schema}.feeds AS f SET last_seq = last WHERE f.id = held;
  END IF;
END
$$;

-- Store a signal, once per key, and make the jobs ready that are parked on it, behind those that wait already; those of a
-- paused batch are held. They are looked for by a statement of their own, which sees what parked while the one before
-- waited for the key. Returns the queues of the jobs; NULL: the key had a signal.
CREATE FUNCTION {schema}.send_signal(signal text, content json, head_starts interval[], clock timestamptz)
RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
  gained text[];
BEGIN
  clock := coalesce(clock, now());
  INSERT INTO {schema}.signals AS s (key, payload, sent_at, created_at) VALUES (signal, content, clock, clock)
  ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, sent_at = excluded.sent_at WHERE s.payload IS NULL;
  IF NOT FOUND THEN
    RETURN NULL;
  END IF;
  WITH woken AS (
    UPDATE {schema}.jobs AS j
    SET (state, parked_on) = (SELECT CASE WHEN p.id IS NULL THEN 'ready' ELSE 'parked' END, chr(31) || p.id
        FROM (SELECT) AS one LEFT JOIN {schema}.batches AS p ON p.id = j.batch_id AND p.paused_at IS NOT NULL),
      run_at = NULL,
      sort_at = CASE WHEN j.lane ~ '"key_limit":1[,}]' THEN j.sort_at ELSE clock - head_starts[j.priority + 1] END
    WHERE j.id = ANY(ARRAY(
      SELECT p.id FROM {schema}.jobs AS p WHERE p.state = 'parked' AND p.parked_on = signal
      ORDER BY p.id FOR UPDATE))
    RETURNING j.queue
  )
  SELECT coalesce(array_agg(DISTINCT w.queue), '{}') INTO gained FROM woken AS w;
  RETURN gained;
END
$$;

-- End those of some held handles that wait: of result, time, cancel and token the first that gets here. Their signals go
-- by key, as whoever parks on several: then they wait for one another instead of deadlocking. The key is that of
-- `signal_key` in the model. The state is asked for so that no plan walks the index of all that wait instead of the key.
CREATE FUNCTION {schema}.end_handles(correlations text[], final text, content json, head_starts interval[],
  clock timestamptz)
RETURNS TABLE (handle {schema}.flow_resume_handles, queues text[]) LANGUAGE plpgsql AS $$
BEGIN
  clock := coalesce(clock, now());
  FOR handle IN
    WITH ended AS (
      UPDATE {schema}.flow_resume_handles AS h
      SET state = final, ended_at = clock, wake_at = CASE WHEN h.target <> '' THEN clock END, payload = content
      WHERE h.correlation_id = ANY(correlations) AND h.state IS NOT DISTINCT FROM 'waiting'
      RETURNING h.*
    )
    SELECT e.* FROM ended AS e ORDER BY e.correlation_id
  LOOP
    queues := {schema}.send_signal('resume:' || handle.correlation_id, ('{"state":"' || final || '"}')::json,
      head_starts, clock);
    RETURN NEXT;
  END LOOP;
END
$$;

-- Hold the handle of a correlation id, made here for the first event or the handle itself, whichever comes first: they
-- take turns on the row. What runs behind this sees what others kept while it waited.
CREATE FUNCTION {schema}.hold_handle(correlation text, clock timestamptz)
RETURNS {schema}.flow_resume_handles LANGUAGE plpgsql AS $$
DECLARE
  held {schema}.flow_resume_handles;
BEGIN
  INSERT INTO {schema}.flow_resume_handles AS h (correlation_id, expect_types, expect_count, arrived, created_at,
    request_types, agents, state, token_hash, target)
  VALUES (correlation, '{}', 0, 0, coalesce(clock, now()), '{}', '{}', 'early', '', '')
  ON CONFLICT (correlation_id) DO UPDATE SET correlation_id = excluded.correlation_id WHERE h.ended_at IS NULL
  RETURNING h.* INTO held;
  IF NOT FOUND THEN
    -- It has ended; it is locked all the same.
    SELECT h.* INTO held FROM {schema}.flow_resume_handles AS h WHERE h.correlation_id = correlation;
  END IF;
  RETURN held;
END
$$;

-- Whether an event is kept for a handle; the rule is that of `expects` in the model.
CREATE FUNCTION {schema}.expects(handle {schema}.flow_resume_handles, dead boolean, type text, agent text)
RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT CASE WHEN dead THEN type = ANY(handle.request_types) AND (handle.agents = '{}' OR agent = ANY(handle.agents))
    ELSE type = ANY(handle.expect_types) END
$$;

-- Count what has come of what a held handle expects, each event once, and end it if that is enough. `more`: one result
-- more than before, so that all is counted anew only where dead letters are kept as well. The rule is that of
-- `count_arrived` in the model.
CREATE FUNCTION {schema}.settle_handle(correlation text, more boolean, head_starts interval[], clock timestamptz)
RETURNS TABLE (handle {schema}.flow_resume_handles, queues text[]) LANGUAGE plpgsql AS $$
BEGIN
  UPDATE {schema}.flow_resume_handles AS h SET arrived = CASE
    WHEN more AND NOT EXISTS (SELECT FROM {schema}.resume_events AS e WHERE e.correlation_id = correlation AND e.dead)
      THEN h.arrived + 1
    ELSE (SELECT count(DISTINCT e.event_id) FROM {schema}.resume_events AS e
      WHERE e.correlation_id = correlation AND NOT (e.dead AND EXISTS (
        SELECT FROM {schema}.resume_events AS c WHERE c.correlation_id = correlation AND c.cause = e.event_id))) END
  WHERE h.correlation_id = correlation
  RETURNING h.* INTO handle;
  IF handle.expect_count > 0 AND handle.arrived >= handle.expect_count THEN
    RETURN QUERY SELECT e.* FROM {schema}.end_handles(ARRAY[correlation], 'resolved', NULL, head_starts, clock) AS e;
  ELSE
    RETURN NEXT;
  END IF;
END
$$;

-- Keep an event of a correlation id, once, and return the handle as it is then; no row: only events came so far. What
-- the handle does not expect is not kept, nor is what comes after its end.
CREATE FUNCTION {schema}.note_event(correlation text, noted_id text, noted_dead boolean, noted_agent text,
  noted_type text, noted_cause text, noted_text json, head_starts interval[], clock timestamptz)
RETURNS TABLE (handle {schema}.flow_resume_handles, queues text[]) LANGUAGE plpgsql AS $$
DECLARE
  kept boolean := false;
BEGIN
  handle := {schema}.hold_handle(correlation, clock);
  IF handle.state = 'early'
      OR handle.state = 'waiting' AND {schema}.expects(handle, noted_dead, noted_type, noted_agent) THEN
    INSERT INTO {schema}.resume_events (correlation_id, event_id, dead, agent, type, cause, noted_at, noted)
    VALUES (correlation, noted_id, noted_dead, noted_agent, noted_type, noted_cause,
      coalesce(clock, clock_timestamp()), noted_text)
    ON CONFLICT (correlation_id, event_id, dead, agent) DO NOTHING;
    kept := FOUND;
  END IF;
  IF handle.state = 'early' THEN
    RETURN;
  ELSIF kept THEN
    RETURN QUERY SELECT s.* FROM {schema}.settle_handle(correlation, NOT noted_dead, head_starts, clock) AS s;
  ELSE
    RETURN NEXT;
  END IF;
END
$$;

-- Let a handle wait for what came early of what it expects, and for what will come. One that waits already, or has ended,
-- is returned as it is: whether it is the same is for the caller to see.
CREATE FUNCTION {schema}.register_handle(correlation text, wait_types text[], wait_count int, wait_requests text[],
  wait_agents text[], wait_token text, wait_target text, wait_time interval, head_starts interval[],
  clock timestamptz)
RETURNS TABLE (handle {schema}.flow_resume_handles, queues text[]) LANGUAGE plpgsql AS $$
BEGIN
  handle := {schema}.hold_handle(correlation, clock);
  IF handle.state <> 'early' THEN
    RETURN NEXT;
    RETURN;
  END IF;
  clock := coalesce(clock, now());
  UPDATE {schema}.flow_resume_handles AS h
  SET state = 'waiting', created_at = clock, expires_at = clock + wait_time, expect_types = wait_types,
    expect_count = wait_count, request_types = wait_requests, agents = wait_agents, token_hash = wait_token,
    target = wait_target
  WHERE h.correlation_id = correlation
  RETURNING h.* INTO handle;
  DELETE FROM {schema}.resume_events AS e
  WHERE e.correlation_id = correlation AND NOT {schema}.expects(handle, e.dead, e.type, e.agent);
  RETURN QUERY SELECT s.* FROM {schema}.settle_handle(correlation, false, head_starts, clock) AS s;
END
$$;

-- Put events and messages into the outbox, the events into their log as well, once per id: what is known is left alone.
CREATE FUNCTION {schema}.insert_events(ids uuid[], topics text[], keys text[], raws boolean[], types text[],
  aggregate_types text[], aggregate_ids text[], correlation_ids text[], causation_ids text[], times timestamptz[],
  schema_versions int[], retry_counts int[], payloads text[], messages bytea[], header_lists text[],
  clock timestamptz)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  clock := coalesce(clock, now());
  WITH given AS MATERIALIZED (
    SELECT * FROM unnest(ids, topics, keys, raws, types, aggregate_types, aggregate_ids, correlation_ids, causation_ids,
        times, schema_versions, retry_counts, payloads, messages, header_lists) WITH ORDINALITY
      AS g (id, topic, key, raw, type, aggregate_type, aggregate_id, correlation_id, causation_id, time, schema_version,
        retries, payload, message, headers, place)
  ), fresh AS (
    INSERT INTO {schema}.events (id, occurred_at, schema_version, retries, type, aggregate_type, aggregate_id,
      correlation_id, causation_id, payload)
    SELECT g.id, coalesce(g.time, clock), g.schema_version, g.retries, g.type, g.aggregate_type, g.aggregate_id,
      g.correlation_id, g.causation_id, g.payload::json
    FROM given AS g WHERE NOT g.raw
    ORDER BY g.place
    ON CONFLICT (id) DO NOTHING
    RETURNING id
  )
  INSERT INTO {schema}.event_outbox (event_id, created_at, raw, state, topic, key, headers, message)
  SELECT g.id, clock, g.raw, 'waiting', g.topic, g.key, g.headers::json, g.message
  FROM given AS g WHERE g.raw OR (g.id IN (SELECT f.id FROM fresh AS f)) IS TRUE
  ORDER BY g.place
  ON CONFLICT (event_id) DO NOTHING;
END
$$;
