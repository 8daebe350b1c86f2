-- Let a handle wait, which what came early may end at once; one that is there is returned as it is: see the function in
-- schema.sql.
-- Locks: the row of the correlation id, which whoever comes first makes; then those of send_signal.
-- Index: primary keys.
SELECT (r.handle).*, r.queues FROM {schema}.register_handle(%(correlation_id)s::text, %(expect_types)s::text[],
  %(expect_count)s::int, %(request_types)s::text[], %(agents)s::text[], %(token_hash)s::text, %(target)s::text,
  %(timeout)s::interval, %(head_starts)s::interval[], %(now)s::timestamptz) AS r
