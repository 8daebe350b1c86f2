ALTER TABLE {schema}.jobs DROP CONSTRAINT jobs_state_check, DROP CONSTRAINT jobs_running_check;
ALTER TABLE {schema}.finished_jobs DROP CONSTRAINT finished_jobs_state_check;
