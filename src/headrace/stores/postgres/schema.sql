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
  applied_at timestamptz NOT NULL DEFAULT now()
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
  -- Half of each page is left for the second entry that a job gets when it is claimed.
  CONSTRAINT jobs_pkey PRIMARY KEY (id) WITH (fillfactor = 50)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0);

-- The claim walks this one and nothing else.
CREATE INDEX jobs_claim ON {schema}.jobs (queue, sort_at, id) WHERE state = 'ready' AND limit_key IS NULL;
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

-- Final jobs. A row never changes; it goes when its retention is over.
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

-- Attempts that failed or crashed without ending their job (releases and snoozes leave no row); the one that ended it is the job's row in history.
CREATE TABLE {schema}.attempts (
  job_id uuid NOT NULL,
  attempt int NOT NULL,
  session uuid,
  started_at timestamptz,
  finished_at timestamptz NOT NULL,
  outcome text NOT NULL,                       -- failed (charged) | crashed
  error json,
  CONSTRAINT attempts_pkey PRIMARY KEY (job_id, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- Checkpoints: the value of a step, once per job and name.
CREATE TABLE {schema}.steps (
  job_id uuid NOT NULL,
  name text NOT NULL,
  value json NOT NULL,
  created_at timestamptz NOT NULL,
  CONSTRAINT steps_pkey PRIMARY KEY (job_id, name)
) WITH (autovacuum_vacuum_scale_factor = 0.05);

-- What a key was used for. Scopes are job:TASK, batch:TASK, and round:BATCH with ROUND:FIRST ORDINAL as the body.
CREATE TABLE {schema}.idempotency_keys (
  scope text NOT NULL,
  key text NOT NULL,
  id uuid NOT NULL,
  body_hash text NOT NULL,
  expires_at timestamptz,                      -- null: lives as long as its batch
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
  CONSTRAINT batches_pkey PRIMARY KEY (id),
  CONSTRAINT batches_state_check CHECK (state IN ('open', 'sealed', 'cancelling', 'abandoned', 'closed')),
  CONSTRAINT batches_outcome_check CHECK (outcome IN ('succeeded', 'partial', 'failed', 'cancelled')),
  CONSTRAINT batches_closed_check
    CHECK ((state = 'closed') = (outcome IS NOT NULL) AND (state = 'closed') = (closed_at IS NOT NULL)),
  CONSTRAINT batches_total_check CHECK (state IN ('open', 'abandoned') OR total IS NOT NULL)
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
-- The aggregator, and the claim that leaves out batches being cancelled.
CREATE INDEX batches_live ON {schema}.batches (state, id) WHERE state <> 'closed';
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

-- The one leader. The row stays after a resignation, so that terms never repeat.
CREATE TABLE {schema}.leader (
  one boolean NOT NULL DEFAULT true,
  session uuid NOT NULL,
  term bigint NOT NULL,
  expires_at timestamptz NOT NULL,
  CONSTRAINT leader_pkey PRIMARY KEY (one),
  CONSTRAINT leader_one_check CHECK (one)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);

-- What operators and apps set for queues.
CREATE TABLE {schema}.queues (
  name text NOT NULL,
  paused boolean NOT NULL DEFAULT false,
  reason text,
  closed boolean NOT NULL DEFAULT false,       -- nothing is enqueued any more: being drained
  alarm_size int,                              -- so many ready jobs are an alarm
  alarm_age interval,                          -- and so is one that has been ready so long
  CONSTRAINT queues_pkey PRIMARY KEY (name)
);

-- Caps of limit keys; capped claims take turns on these rows.
CREATE TABLE {schema}.limits (
  key text NOT NULL,
  cap int NOT NULL,
  CONSTRAINT limits_pkey PRIMARY KEY (key),
  CONSTRAINT limits_cap_check CHECK (cap >= 0)
);

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

-- One job, and the hint of it behind its commit: inside it all commits would queue up, sent by the client it would cost
-- a round trip. The hint does not wait for others that hint: it fails then, with the job stored. Without a channel it is
-- a plain insert, which may be part of a transaction.
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
