-- Sessions of the last day, live ones first, with how many jobs run under each.
-- Locks: none. Index: none; scans the hot table.
SELECT s.id, s.hostname, s.host, s.pid, s.start_time, s.queues, s.started_at, s.expires_at,
  s.expires_at > coalesce(%(now)s::timestamptz, now()) AS alive, coalesce(r.running, 0) AS running, s.stats
FROM {schema}.sessions AS s
LEFT JOIN (SELECT j.session, count(*) AS running FROM {schema}.jobs AS j WHERE j.state = 'running' GROUP BY j.session)
  AS r ON r.session = s.id
ORDER BY alive DESC, s.started_at
