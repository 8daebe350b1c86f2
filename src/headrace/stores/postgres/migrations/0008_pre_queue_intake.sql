ALTER TABLE {schema}.queues ADD COLUMN closed boolean NOT NULL DEFAULT false, ADD COLUMN alarm_size int,
  ADD COLUMN alarm_age interval;
CREATE INDEX jobs_scheduled ON {schema}.jobs (queue) WHERE state = 'scheduled';
