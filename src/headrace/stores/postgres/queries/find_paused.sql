-- The batches whose pause or resume may have to be finished, for the leader only: those that are paused, and those of which
-- anything is held, each found by one step behind the one before, however many jobs it has.
-- Locks: none. Index: jobs_parked, batches_paused, primary key.
WITH RECURSIVE holders AS (
  (SELECT h.parked_on FROM {schema}.jobs AS h
  WHERE h.state = 'parked' AND h.parked_on >= chr(31) AND h.parked_on < chr(32) ORDER BY h.parked_on LIMIT 1)
  UNION ALL
  SELECT n.parked_on FROM holders AS f CROSS JOIN LATERAL (SELECT h.parked_on FROM {schema}.jobs AS h
    WHERE h.state = 'parked' AND h.parked_on > f.parked_on AND h.parked_on < chr(32) ORDER BY h.parked_on LIMIT 1) AS n
)
SELECT b.id, b.paused_at IS NOT NULL AS paused FROM {schema}.batches AS b
WHERE b.id = ANY(ARRAY(
    SELECT p.id FROM {schema}.batches AS p WHERE p.paused_at IS NOT NULL
    UNION SELECT substr(f.parked_on, 2)::uuid FROM holders AS f))
  AND EXISTS (SELECT FROM {schema}.leader AS l WHERE l.one = %(role)s AND l.session = %(session)s AND l.term = %(term)s
    AND l.expires_at > coalesce(%(now)s::timestamptz, now()))
ORDER BY b.id
