ALTER INDEX {schema}.jobs_pkey SET (fillfactor = 50);
