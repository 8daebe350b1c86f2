-- Write how circuit breakers stand after reports, each only if nobody changed it since it was read. Returns the keys of
-- those that were written; the caller reads and judges the others anew.
-- Locks: the rows, in the order given (the caller sorts by key). Index: primary key.
WITH read AS MATERIALIZED (
  SELECT b.key FROM {schema}.breakers AS b
    JOIN unnest(%(keys)s::text[], %(versions)s::bigint[]) AS r (key, version) ON r.key = b.key AND r.version = b.version
  ORDER BY b.key FOR UPDATE OF b
)
UPDATE {schema}.breakers AS b
SET state = m.state, failures = m.failures, calls = m.calls, errors = m.errors, window_at = m.window_at,
  retry_at = m.retry_at, probe_job = m.probe_job, probe_attempt = m.probe_attempt, version = b.version + 1
FROM unnest(%(keys)s::text[], %(states)s::text[], %(failures)s::int[], %(calls)s::int[], %(errors)s::int[],
    %(window_ats)s::timestamptz[], %(retry_ats)s::timestamptz[], %(probe_jobs)s::uuid[], %(probe_attempts)s::int[])
  AS m (key, state, failures, calls, errors, window_at, retry_at, probe_job, probe_attempt)
WHERE b.key = m.key AND b.key IN (SELECT r.key FROM read AS r)
RETURNING b.key
