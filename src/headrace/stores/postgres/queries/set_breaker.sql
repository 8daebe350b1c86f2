-- Open a circuit breaker by hand, for its cooldown, or close it. No row: there is none.
-- Locks: the row. Index: primary key.
UPDATE {schema}.breakers AS b
SET state = CASE WHEN %(closed)s::boolean THEN 'closed' ELSE 'open' END, failures = 0, calls = 0, errors = 0,
  window_at = NULL, probe_job = NULL, probe_attempt = NULL, version = b.version + 1,
  retry_at = CASE WHEN NOT %(closed)s::boolean THEN coalesce(%(now)s::timestamptz, now()) + b.cooldown END
WHERE b.key = %(key)s
RETURNING b.key
