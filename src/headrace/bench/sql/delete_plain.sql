-- The least a finish does: the rows are gone.
DELETE FROM public.jobs WHERE id = ANY($1::uuid[]) RETURNING id
