-- Steps of several jobs by job and name, for whoever waits for them.
-- Locks: none. Index: primary key.
SELECT s.job_id, s.name, s.value
FROM unnest(%(jobs)s::uuid[], %(names)s::text[]) AS w (job_id, name)
JOIN {schema}.steps AS s ON s.job_id = w.job_id AND s.name = w.name
