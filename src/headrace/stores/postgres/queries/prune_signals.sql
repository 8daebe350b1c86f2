-- Remove signals that came longer ago, and keys as old that no job is parked on any more. OFFSET 0 keeps the planner from
-- reading the whole table of jobs for that.
-- Locks: the removed rows, skipping locked ones. Index: signals_sent, signals_awaited, jobs_parked, primary key.
DELETE FROM {schema}.signals WHERE key = ANY((ARRAY(
  SELECT s.key FROM {schema}.signals AS s
  WHERE s.payload IS NOT NULL AND s.sent_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  ORDER BY s.sent_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED) || ARRAY(
  SELECT s.key FROM {schema}.signals AS s
  WHERE s.payload IS NULL AND s.created_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
    AND NOT EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.state = 'parked' AND j.parked_on = s.key OFFSET 0)
  ORDER BY s.created_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))[1 : %(limit)s::int])
RETURNING key
