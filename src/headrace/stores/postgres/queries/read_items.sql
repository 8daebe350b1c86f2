-- Finished items of a batch after a position, in the order of the transactions that recorded them. `settled` rows lie
-- below every transaction that is still open: nothing can appear before them any more, so a cursor may pass them.
-- Locks: none. Index: finished_jobs_items.
SELECT f.ordinal, f.state, f.id, f.result, f.error, f.usage, f.xact::text AS xact,
  f.xact < pg_snapshot_xmin(pg_current_snapshot()) AS settled
FROM {schema}.finished_jobs AS f
WHERE f.batch_id = %(batch_id)s AND (f.xact, f.ordinal) > (%(xact)s::text::xid8, %(ordinal)s::int)
ORDER BY f.xact, f.ordinal LIMIT %(limit)s::int
