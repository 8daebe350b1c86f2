-- Schedules, and the fires of each. Nothing of an older version knows them.
CREATE TABLE {schema}.schedules (
  name text NOT NULL,
  created_at timestamptz NOT NULL,
  declared_at timestamptz NOT NULL,
  after_at timestamptz NOT NULL,
  next_at timestamptz,
  paused boolean NOT NULL DEFAULT false,
  rule text NOT NULL,
  definition json NOT NULL,
  CONSTRAINT schedules_pkey PRIMARY KEY (name)
) WITH (fillfactor = 50);
CREATE TABLE {schema}.schedule_fires (
  job_id uuid NOT NULL,
  fire_at timestamptz NOT NULL,
  fired_at timestamptz NOT NULL,
  manual boolean NOT NULL,
  schedule text NOT NULL,
  CONSTRAINT schedule_fires_pkey PRIMARY KEY (job_id)
);
CREATE UNIQUE INDEX schedule_fires_once ON {schema}.schedule_fires (schedule, fire_at) WHERE NOT manual;
CREATE INDEX schedule_fires_history ON {schema}.schedule_fires (schedule, fired_at, fire_at);
