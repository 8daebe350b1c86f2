-- Make queues gated, for good: admission alone starts their jobs from now on.
-- Locks: the rows of queues that were not gated. Index: primary key.
INSERT INTO {schema}.queues (name, gated)
SELECT g.queue, true FROM unnest(%(queues)s::text[]) AS g (queue)
WHERE NOT EXISTS (SELECT FROM {schema}.queues AS q WHERE q.name = g.queue AND q.gated)
ON CONFLICT (name) DO UPDATE SET gated = true
