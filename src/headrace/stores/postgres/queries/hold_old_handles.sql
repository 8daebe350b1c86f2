-- Hold handles that ended longer ago, and rows as old of early events without one; prune_handles follows.
-- Locks: the rows, skipping locked ones. Index: flow_resume_handles_ended, flow_resume_handles_early.
SELECT unnest((ARRAY(
  SELECT h.correlation_id FROM {schema}.flow_resume_handles AS h
  WHERE h.ended_at IS NOT NULL AND h.ended_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  ORDER BY h.ended_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED) || ARRAY(
  SELECT h.correlation_id FROM {schema}.flow_resume_handles AS h
  WHERE h.state = 'early' AND h.created_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  ORDER BY h.created_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))[1 : %(limit)s::int]) AS correlation_id
