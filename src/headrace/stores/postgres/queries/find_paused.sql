-- The batches whose pause or resume may have to be finished, for the leader only.
-- Locks: none. Index: batches_paused.
SELECT b.id, b.paused_at IS NOT NULL AS paused FROM {schema}.batches AS b
WHERE (b.paused_at IS NOT NULL OR b.resumed_at IS NOT NULL)
  AND EXISTS (SELECT FROM {schema}.leader AS l WHERE l.one = %(role)s AND l.session = %(session)s AND l.term = %(term)s
    AND l.expires_at > coalesce(%(now)s::timestamptz, now()))
ORDER BY b.id
