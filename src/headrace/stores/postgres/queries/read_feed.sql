-- Entries of a feed behind a number, in order. The feed is looked up first: joined, the planner walks all entries instead.
-- Locks: none. Index: feeds_name, primary key of the entries.
SELECT e.seq, e.type, e.data, e.key, e.appended_at FROM {schema}.feed_entries AS e
WHERE e.feed_id = (SELECT f.id FROM {schema}.feeds AS f WHERE f.name = %(feed)s) AND e.seq > %(after)s::bigint
ORDER BY e.seq LIMIT %(limit)s::int
