-- Remember sessions that ended a while ago and under which nothing runs, so that rescuers need not look again. The
-- wait leaves time to claims that saw the session alive and commit late; a thorough rescue finds later ones still.
-- Locks: the marked session rows. Index: none; scans the hot table, only when there is a session to mark.
UPDATE {schema}.sessions AS s SET swept = true
WHERE NOT s.swept AND s.expires_at <= coalesce(%(now)s::timestamptz, now()) - %(after)s::interval
  AND NOT EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.state = 'running' AND j.session = s.id)
