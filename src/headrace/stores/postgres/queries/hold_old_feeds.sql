-- Hold feeds whose oldest entry is older, the oldest first; prune_feeds follows.
-- Locks: the rows, skipping locked ones. Index: feeds_oldest.
SELECT f.id FROM {schema}.feeds AS f
WHERE f.oldest_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
ORDER BY f.oldest_at LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED
