-- Keep how nodes ended that the job of a run ran, under the fence of its attempt; no row: the fence is lost. Paths that
-- have an ending keep it; returns those that were kept now.
-- Locks: the job row (shared, so that it cannot end meanwhile), then the endings in the order given. Index: primary keys.
WITH owner AS MATERIALIZED (
  SELECT j.id FROM {schema}.jobs AS j
  WHERE j.id = %(job_id)s AND j.attempt = %(attempt)s::int AND j.session IS NOT DISTINCT FROM %(session)s::uuid
    AND j.state IS NOT DISTINCT FROM 'running'
  FOR SHARE
), kept AS (
  INSERT INTO {schema}.run_nodes
    (run_id, path, state, output, port, error, artifact, attempts, reused, started_at, finished_at)
  SELECT %(run_id)s::uuid, e.path, e.state, e.output, e.port, e.error, e.artifact, e.attempts, e.reused, e.started_at,
    coalesce(%(now)s::timestamptz, now())
  FROM owner CROSS JOIN unnest(%(node_paths)s::text[], %(node_states)s::text[], %(node_outputs)s::json[],
      %(node_ports)s::text[], %(node_errors)s::json[], %(node_artifacts)s::text[], %(node_attempts)s::int[],
      %(node_reused)s::boolean[], %(node_started)s::timestamptz[])
      AS e (path, state, output, port, error, artifact, attempts, reused, started_at)
  ON CONFLICT (run_id, path) DO NOTHING
  RETURNING path
)
SELECT ARRAY(SELECT path::text FROM kept) AS kept FROM owner
