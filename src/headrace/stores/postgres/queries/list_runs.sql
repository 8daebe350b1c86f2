-- Runs that match, newest first, from behind a place in that order or from its start. Ids are time-ordered to the millisecond, so some more are read by id and then sorted.
-- Locks: none. Index: primary key, runs_workflow or runs_state, backwards.
SELECT * FROM (
  (SELECT id, workflow, version, snapshot, state, level, reason, input, context, output, error, key, rerun_of, rerun_from,
  created_at, finished_at
  FROM {schema}.runs WHERE %(workflow)s::text IS NULL AND %(state)s::text IS NULL
  AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
  ORDER BY id DESC LIMIT %(limit)s::int + 100)
  UNION ALL
  (SELECT id, workflow, version, snapshot, state, level, reason, input, context, output, error, key, rerun_of, rerun_from,
  created_at, finished_at
  FROM {schema}.runs WHERE workflow = %(workflow)s::text AND state = coalesce(%(state)s::text, state)
  AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
  ORDER BY id DESC LIMIT %(limit)s::int + 100)
  UNION ALL
  (SELECT id, workflow, version, snapshot, state, level, reason, input, context, output, error, key, rerun_of, rerun_from,
  created_at, finished_at
  FROM {schema}.runs WHERE %(workflow)s::text IS NULL AND state = %(state)s::text
  AND (%(before_at)s::timestamptz IS NULL OR (created_at, id) < (%(before_at)s::timestamptz, %(before_id)s::uuid))
  ORDER BY id DESC LIMIT %(limit)s::int + 100)
) AS r
ORDER BY created_at DESC, id DESC LIMIT %(limit)s::int
