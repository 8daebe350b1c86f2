-- A claim that leaves a fence (attempt and session) on each row.
UPDATE public.jobs AS j SET state = 'running', session = $3::uuid, attempt = j.attempt + 1, started_at = now()
WHERE j.id = ANY(ARRAY(
  SELECT r.id FROM public.jobs AS r WHERE r.queue = $1 AND r.state = 'ready' AND r.limit_key IS NULL
  ORDER BY r.sort_at LIMIT $2::int FOR UPDATE SKIP LOCKED))
RETURNING j.id, j.task, j.attempt, j.failures, j.crashes, j.batch_id, j.ordinal, j.sort_at, j.args, j.options
