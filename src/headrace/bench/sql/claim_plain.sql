-- The least a claim does: mark up to $2 ready rows of a queue and return them.
UPDATE public.jobs AS j SET state = 'running'
WHERE j.id = ANY(ARRAY(
  SELECT r.id FROM public.jobs AS r WHERE r.queue = $1 AND r.state = 'ready' AND r.limit_key IS NULL
  ORDER BY r.sort_at LIMIT $2::int FOR UPDATE SKIP LOCKED))
RETURNING j.id, j.task, j.args
