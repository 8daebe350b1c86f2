-- Let a handle wait, whose row was made for early events or just now; run after hold_handle.
-- Locks: the row, held before. Index: primary key.
UPDATE {schema}.flow_resume_handles AS h
SET state = 'waiting', created_at = c.now, expires_at = c.now + %(timeout)s::interval,
  expect_types = %(expect_types)s::text[], expect_count = %(expect_count)s::int,
  request_types = %(request_types)s::text[], agents = %(agents)s::text[],
  token_hash = %(token_hash)s, target = %(target)s
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS c
WHERE h.correlation_id = %(correlation_id)s
