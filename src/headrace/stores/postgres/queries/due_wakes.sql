-- Take ended handles whose target is to be woken; nobody else sees them for a time.
-- Locks: the rows, skipping locked ones. Index: flow_resume_handles_wakes, then primary key.
WITH due AS MATERIALIZED (
  SELECT h.correlation_id FROM {schema}.flow_resume_handles AS h
  WHERE h.wake_at IS NOT NULL AND h.wake_at <= coalesce(%(now)s::timestamptz, now())
  ORDER BY h.wake_at
  LIMIT %(limit)s::int
  FOR UPDATE SKIP LOCKED
)
UPDATE {schema}.flow_resume_handles AS h SET wake_at = coalesce(%(now)s::timestamptz, now()) + %(again_in)s::interval
FROM due AS d
WHERE h.correlation_id = d.correlation_id
RETURNING h.*
