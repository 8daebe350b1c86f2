-- A jobs table without any framework, the columns as in docs/decisions/0001-hot-path.md: one key, one partial index.
CREATE TABLE public.jobs (
  id uuid PRIMARY KEY, batch_id uuid, session uuid,
  sort_at timestamptz NOT NULL DEFAULT now(), run_at timestamptz, created_at timestamptz NOT NULL DEFAULT now(),
  started_at timestamptz, ordinal int, attempt int NOT NULL DEFAULT 0, failures smallint NOT NULL DEFAULT 0,
  crashes smallint NOT NULL DEFAULT 0, state text NOT NULL DEFAULT 'ready', queue text NOT NULL DEFAULT 'default',
  task text NOT NULL DEFAULT 'noop', limit_key text, args json NOT NULL, options json
);
CREATE INDEX jobs_claim ON public.jobs (queue, sort_at) WHERE state = 'ready' AND limit_key IS NULL;
