-- End those of some held handles that wait, send their signals and wake who is parked on them: see the function in
-- schema.sql.
-- Locks: the rows, held before; then those of send_signal, in the order of the keys. Index: primary key.
SELECT (e.handle).*, e.queues FROM {schema}.end_handles(%(correlation_ids)s::text[], %(state)s::text,
  %(payload)s::text::json, %(head_starts)s::interval[], %(now)s::timestamptz) AS e
