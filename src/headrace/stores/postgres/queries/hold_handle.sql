-- Hold the handle of a correlation id, made here for the first event or the handle itself, whichever comes first: they take
-- turns on the row. No row: it has ended; it is locked all the same.
-- Locks: the row, to the end of the transaction. Index: primary key.
INSERT INTO {schema}.flow_resume_handles AS h (correlation_id, expect_types, expect_count, arrived, created_at,
  request_types, agents, state, token_hash, target)
VALUES (%(correlation_id)s, '{}', 0, 0, coalesce(%(now)s::timestamptz, now()), '{}', '{}', 'early', '', '')
ON CONFLICT (correlation_id) DO UPDATE SET correlation_id = excluded.correlation_id WHERE h.ended_at IS NULL
RETURNING h.*
