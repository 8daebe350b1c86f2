-- Hold runs as they are, for the effects that are applied in this transaction: a cancel comes before or after them, and
-- who settles jobs of the same run waits. Ends of jobs that end no run do not.
-- Locks: the runs, by id. Index: primary key.
SELECT id FROM {schema}.runs WHERE id = ANY(%(run_ids)s::uuid[]) ORDER BY id FOR NO KEY UPDATE
