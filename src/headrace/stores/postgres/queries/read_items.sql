-- Finished items of a batch after a position, in the order of the transactions that recorded them: those that a snapshot
-- has (`within`, else that of this statement, which is returned) and an earlier one (`known`) has not. `retried` are
-- those that were run again.
-- Locks: none. Index: finished_jobs_items; the retry indexes for those that did not succeed.
SELECT f.ordinal, f.state, f.id, f.result, f.error, f.usage, f.xact::text AS xact,
  coalesce(%(within)s::text, pg_current_snapshot()::text) AS snapshot,
  CASE WHEN f.state = 'succeeded' THEN false ELSE EXISTS (SELECT FROM {schema}.jobs AS r WHERE r.retry_of = f.id)
    OR EXISTS (SELECT FROM {schema}.finished_jobs AS r WHERE r.retry_of = f.id) END AS retried
FROM {schema}.finished_jobs AS f
WHERE f.batch_id = %(batch_id)s AND (f.xact, f.ordinal) > (%(xact)s::text::xid8, %(ordinal)s::int)
  AND pg_visible_in_snapshot(f.xact, coalesce(%(within)s::text::pg_snapshot, pg_current_snapshot()))
  AND NOT coalesce(pg_visible_in_snapshot(f.xact, %(known)s::text::pg_snapshot), false)
ORDER BY f.xact, f.ordinal LIMIT %(limit)s::int
