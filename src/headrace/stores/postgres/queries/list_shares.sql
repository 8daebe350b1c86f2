-- Fair keys with a weight of their own or a tag that still says something: behind the virtual time it says nothing.
-- Locks: none. Index: none, one row per fair key that was served lately.
SELECT s.queue, s.fair_key, coalesce(s.weight, 1) AS weight, greatest(s.finish, g.virtual, 0) AS finish
FROM {schema}.shares AS s LEFT JOIN {schema}.gates AS g ON g.queue = s.queue
WHERE s.fair_key <> '' AND (s.weight IS NOT NULL OR s.finish > g.virtual)
ORDER BY s.queue COLLATE "C", s.fair_key LIMIT %(most)s::bigint
