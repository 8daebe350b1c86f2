-- End a session at once. A worker that stops cleanly leaves nothing running: then nobody need sweep its session, which
-- would cost each rescuer a scan of the hot table every time until it is marked.
-- Locks: the session's row. Index: primary key; one scan of the hot table per stop of a worker.
UPDATE {schema}.sessions AS s
SET expires_at = coalesce(%(now)s::timestamptz, now()),
  swept = NOT EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.state = 'running' AND j.session = s.id)
WHERE s.id = %(session)s AND s.expires_at > coalesce(%(now)s::timestamptz, now())
