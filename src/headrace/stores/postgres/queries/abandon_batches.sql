-- Mark open batches abandoned whose submitter was silent too long, for the leader only.
-- Locks: the batch rows. Index: batches_live, primary key of batch_slices.
UPDATE {schema}.batches AS b SET state = 'abandoned'
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
WHERE b.state = 'open' AND b.opened_at <= t.now - %(seal_timeout)s::interval
  AND NOT EXISTS (SELECT FROM {schema}.batch_slices AS s
    WHERE s.batch_id = b.id AND s.created_at > t.now - %(seal_timeout)s::interval)
  AND EXISTS (SELECT FROM {schema}.leader AS l WHERE l.one = %(role)s AND l.session = %(session)s AND l.term = %(term)s
    AND l.expires_at > t.now)
