-- Store a run, and the snapshot of its graph unless it is there; no row: the run is stored already. A snapshot that is
-- there is held, so that it is not pruned before the run can be seen; one that goes meanwhile is stored again.
-- Locks: the snapshot (key share), then the new rows. Index: primary keys.
WITH held AS MATERIALIZED (
  SELECT hash FROM {schema}.snapshots WHERE hash = %(snapshot)s::text FOR KEY SHARE
), added AS (
  INSERT INTO {schema}.snapshots (hash, graph)
  SELECT %(snapshot)s::text, %(graph)s WHERE NOT EXISTS (SELECT FROM held)
  ON CONFLICT (hash) DO NOTHING
)
INSERT INTO {schema}.runs (id, workflow, version, snapshot, state, level, reason, input, context, key, rerun_of,
  rerun_from, created_at)
VALUES (%(id)s::uuid, %(workflow)s, %(version)s::int, %(snapshot)s::text, 'running', %(level)s, %(reason)s,
  %(input)s::text::json, %(context)s::text::json, %(key)s::text, %(rerun_of)s::uuid, %(rerun_from)s::text,
  coalesce(%(now)s::timestamptz, now()))
ON CONFLICT (id) DO NOTHING
RETURNING id
