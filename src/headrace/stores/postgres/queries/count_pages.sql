-- How many pages the hot table and the history have.
-- Locks: none. Index: none.
SELECT pg_relation_size('{schema}.jobs') / current_setting('block_size')::bigint AS jobs,
  pg_relation_size('{schema}.finished_jobs') / current_setting('block_size')::bigint AS finished
