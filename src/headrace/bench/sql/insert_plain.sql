-- The raw multi-row insert: all rows of two arrays.
INSERT INTO public.jobs (id, args) SELECT * FROM unnest($1::uuid[], $2::json[])
