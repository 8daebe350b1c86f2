-- Hold waiting handles whose time has come; end_handles follows.
-- Locks: the rows, skipping locked ones: what notes an event ends them sooner. Index: flow_resume_handles_waiting.
SELECT h.correlation_id FROM {schema}.flow_resume_handles AS h
WHERE h.state = 'waiting' AND h.expires_at <= coalesce(%(now)s::timestamptz, now())
ORDER BY h.expires_at
LIMIT %(limit)s::int
FOR UPDATE SKIP LOCKED
