-- Model calls of a job, newest first: those in a state, of a pool, or all.
-- Locks: none. Index: calls_job.
SELECT c.* FROM {schema}.calls AS c
WHERE c.job_id = %(job)s::uuid
  AND (%(state)s::text IS NULL OR c.state = %(state)s::text) AND (%(pool)s::text IS NULL OR c.pool = %(pool)s::text)
ORDER BY c.opened_at DESC, c.id DESC LIMIT %(limit)s::bigint
