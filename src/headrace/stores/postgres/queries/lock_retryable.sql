-- Hold those of the given jobs that are final without success and of no run, in the order given, so that one retry of
-- each passes.
-- Locks: the history rows, by id, as every other that retries them. Index: primary key.
SELECT f.id, f.batch_id FROM {schema}.finished_jobs AS f
WHERE f.id = ANY(%(job_ids)s::uuid[]) AND f.state <> 'succeeded' AND f.run_id IS NULL
ORDER BY f.id
FOR UPDATE OF f
