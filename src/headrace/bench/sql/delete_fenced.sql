-- A finish that respects the fence and keeps no history.
DELETE FROM public.jobs AS j USING unnest($1::uuid[], $2::int[]) AS d (id, attempt)
WHERE j.id = d.id AND j.attempt = d.attempt AND j.session IS NOT DISTINCT FROM $3::uuid
  AND j.state IS NOT DISTINCT FROM 'running'
RETURNING j.id
