-- Look no more for jobs that were held late, of batches that were resumed some time ago and hold none.
-- Locks: the batch rows. Index: batches_paused, jobs_parked.
UPDATE {schema}.batches AS b SET resumed_at = NULL
WHERE b.resumed_at <= coalesce(%(now)s::timestamptz, now()) - %(held_late)s::interval AND b.paused_at IS NULL
  AND NOT EXISTS (SELECT FROM {schema}.jobs AS h WHERE h.state = 'parked' AND h.parked_on = chr(31) || b.id OFFSET 0)
  AND EXISTS (SELECT FROM {schema}.leader AS l WHERE l.one = %(role)s AND l.session = %(session)s AND l.term = %(term)s
    AND l.expires_at > coalesce(%(now)s::timestamptz, now()))
