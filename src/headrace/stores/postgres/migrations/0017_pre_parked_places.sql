-- The index of parked jobs in their order, beside the one that the next migration drops. While it is built, writes of jobs
-- wait and are tried again; it stands alone because a transaction that goes on to lock more could not get it.
CREATE INDEX jobs_parked_next ON {schema}.jobs (parked_on, sort_at, id) WHERE state = 'parked' AND parked_on IS NOT NULL;
