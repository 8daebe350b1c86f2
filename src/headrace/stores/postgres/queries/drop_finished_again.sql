-- After a retried insert, in its transaction: take away again what had been inserted, run and finished before.
-- Locks: the rows removed, which no one else can see yet. Index: both primary keys.
DELETE FROM {schema}.jobs AS j
USING {schema}.finished_jobs AS f
WHERE f.id = ANY(%(ids)s::uuid[]) AND j.id = f.id
