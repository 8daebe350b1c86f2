-- The raw single insert.
INSERT INTO public.jobs (id, args) VALUES ($1::uuid, $2::json)
