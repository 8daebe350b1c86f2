-- Those of the given runs that are final.
-- Locks: none. Index: primary key.
SELECT id, workflow, version, snapshot, state, level, reason, input, context, output, error, key, rerun_of, rerun_from,
  created_at, finished_at
FROM {schema}.runs WHERE id = ANY(%(run_ids)s::uuid[]) AND finished_at IS NOT NULL
