-- Lines of handlers, kept with how their attempts ended. The code of the release before writes and reads none of it;
-- where that prunes a job, its lines stay.
-- What handlers logged in attempts, only of those that logged something: the last lines, bounded. Of a job the last
-- attempts, for one may snooze without end. Not in `attempts`: that has no row for what snoozed, or for the last one.
CREATE TABLE {schema}.attempt_logs (
  job_id uuid NOT NULL,
  attempt int NOT NULL,
  log json NOT NULL,                           -- {"dropped", "lines": [[instant, level, message], …]}
  CONSTRAINT attempt_logs_pkey PRIMARY KEY (job_id, attempt)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
