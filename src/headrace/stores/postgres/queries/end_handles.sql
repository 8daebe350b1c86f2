-- End handles that wait: of result, time, cancel and token the first that gets here. Their signals follow in the same
-- transaction.
-- Locks: the rows, held before. Index: primary key.
UPDATE {schema}.flow_resume_handles AS h
SET state = %(state)s, ended_at = c.now, wake_at = CASE WHEN h.target <> '' THEN c.now END,
  payload = %(payload)s::text::json
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS c
WHERE h.correlation_id = ANY(%(correlation_ids)s::text[]) AND h.state = 'waiting'
RETURNING h.*
