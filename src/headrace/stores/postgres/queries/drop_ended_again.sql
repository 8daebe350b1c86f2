-- Before attempts are ended for good: take away those jobs, under the fence of their attempts, that had ended before and
-- came back by a late duplicate of their insert. What they ended as first is kept.
-- Locks: the rows removed, in the order given (the caller sorts by id). Index: both primary keys (see finish_jobs).
DELETE FROM {schema}.jobs AS j
USING unnest(%(ids)s::uuid[], %(attempts)s::int[]) AS d (id, attempt)
WHERE j.id = d.id AND j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM %(session)s::uuid
  AND j.state IS NOT DISTINCT FROM 'running' AND EXISTS (SELECT FROM {schema}.finished_jobs AS f WHERE f.id = j.id)
RETURNING j.id
