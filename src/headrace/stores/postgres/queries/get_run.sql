-- One run, without its nodes.
-- Locks: none. Index: primary key.
SELECT id, workflow, version, snapshot, state, level, reason, input, context, output, error, key, rerun_of, rerun_from,
  created_at, finished_at
FROM {schema}.runs WHERE id = %(run_id)s
