DROP INDEX {schema}.finished_jobs_age;
CREATE INDEX finished_jobs_succeeded ON {schema}.finished_jobs (finished_at)
  WHERE state IS NOT DISTINCT FROM 'succeeded';
CREATE INDEX finished_jobs_failed ON {schema}.finished_jobs (queue, state, finished_at)
  WHERE state IS DISTINCT FROM 'succeeded';

ALTER TABLE {schema}.sessions ADD COLUMN searched_at timestamptz;

ALTER TABLE {schema}.finished_jobs SET (autovacuum_vacuum_scale_factor = 0.05,
  autovacuum_vacuum_insert_scale_factor = 0.05);
ALTER TABLE {schema}.attempts SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE {schema}.steps SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE {schema}.idempotency_keys SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE {schema}.answers SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE {schema}.batches SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 500);
ALTER TABLE {schema}.batch_slices SET (autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE {schema}.sessions SET (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 200);
ALTER TABLE {schema}.leader SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0,
  autovacuum_vacuum_threshold = 200);
