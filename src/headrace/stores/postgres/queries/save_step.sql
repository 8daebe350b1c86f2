-- Store a step once, under the fence of its attempt; returns the value that stands, no row when the fence is lost.
-- What an executor keeps is of one attempt: the next one, which names itself in the value, takes its place.
-- Locks: the job row (shared, so that it cannot end meanwhile), then the step row. Index: both primary keys.
WITH owner AS MATERIALIZED (
  SELECT j.id FROM {schema}.jobs AS j
  WHERE j.id = %(job_id)s AND j.attempt = %(attempt)s::int AND j.session IS NOT DISTINCT FROM %(session)s::uuid
    AND j.state IS NOT DISTINCT FROM 'running'
  FOR SHARE
)
INSERT INTO {schema}.steps AS s (job_id, name, value, created_at)
SELECT id, %(name)s, %(value)s::json, coalesce(%(now)s::timestamptz, now()) FROM owner
ON CONFLICT (job_id, name) DO UPDATE SET value = CASE
  WHEN starts_with(s.name, 'headrace:') AND s.value ->> 'attempt' IS DISTINCT FROM %(attempt)s::int::text
    THEN excluded.value
  ELSE s.value END
RETURNING value
