-- Model calls of a job are found without reading the ledger from its end. The code of the release before does not mind.
-- While the index is built, writes of calls wait and are tried again.
CREATE INDEX calls_job ON {schema}.calls (job_id, opened_at, id) WHERE job_id IS NOT NULL;
