-- Those of the given jobs that exist.
-- Locks: none. Index: both primary keys.
SELECT id FROM {schema}.jobs WHERE id = ANY(%(job_ids)s::uuid[])
UNION ALL
SELECT id FROM {schema}.finished_jobs WHERE id = ANY(%(job_ids)s::uuid[])
