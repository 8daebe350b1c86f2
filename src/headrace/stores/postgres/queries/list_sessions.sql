-- Sessions of the last day, live ones first, with how many jobs run under each: counted while the hot table is small,
-- else what their workers reported with their last heartbeat.
-- Locks: none. Index: none; a scan of the hot table up to a number of pages, the one-time filter forbids it beyond.
SELECT s.id, s.hostname, s.host, s.pid, s.start_time, s.queues, s.started_at, s.expires_at, t.alive,
  CASE WHEN t.counted THEN coalesce(r.running, 0) WHEN t.alive
    THEN coalesce((s.stats ->> 'headrace.jobs.running')::bigint, 0) + coalesce((s.stats ->> 'headrace.jobs.unacked')::bigint, 0)
    ELSE 0 END AS running, s.stats
FROM {schema}.sessions AS s
CROSS JOIN LATERAL (SELECT s.expires_at > coalesce(%(now)s::timestamptz, now()) AS alive,
  %(pages)s::bigint <= %(most)s::bigint AS counted) AS t
LEFT JOIN (SELECT j.session, count(*) AS running FROM {schema}.jobs AS j
  WHERE j.state = 'running' AND %(pages)s::bigint <= %(most)s::bigint GROUP BY j.session) AS r ON r.session = s.id
ORDER BY alive DESC, s.started_at
