-- The batches a sweep must look at, for the leader only: being cancelled, or sealed and either done or over their
-- policy. Sealed batches with live jobs and without a policy cost one index probe each.
-- Locks: none. Index: batches_live, jobs_batch, finished_jobs_unsuccessful.
SELECT b.id, b.state FROM {schema}.batches AS b
WHERE b.state IN ('sealed', 'cancelling')
  AND (b.state = 'cancelling' OR b.max_failed IS NOT NULL
    OR NOT EXISTS (SELECT FROM {schema}.jobs AS j WHERE j.batch_id = b.id))
  AND EXISTS (SELECT FROM {schema}.leader AS l WHERE l.one = %(role)s AND l.session = %(session)s AND l.term = %(term)s
    AND l.expires_at > coalesce(%(now)s::timestamptz, now()))
ORDER BY b.id
