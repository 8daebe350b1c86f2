-- Remove sessions that ended long ago and under which nothing runs any more.
-- Locks: the removed rows. Index: none, scans the hot table when there is such a session.
DELETE FROM {schema}.sessions WHERE id = ANY(ARRAY(
  SELECT s.id FROM {schema}.sessions AS s
  WHERE s.expires_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
    AND NOT EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.state = 'running' AND j.session = s.id)
  LIMIT %(limit)s::int))
RETURNING id
