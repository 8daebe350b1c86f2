-- Remove older entries of feeds, from the first of each on, and feeds with the last of theirs. Run after hold_old_feeds, in
-- a snapshot of its own, so that it sees what was appended before those were held.
-- Locks: the rows of the feeds, held before, and the entries. Index: primary keys.
WITH old AS MATERIALIZED (
  SELECT h.id, e.seq
  FROM unnest(%(feed_ids)s::bigint[]) AS h (id)
    CROSS JOIN LATERAL (
      SELECT x.seq, bool_and(x.appended_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval)
        OVER (ORDER BY x.seq) AS over
      FROM {schema}.feed_entries AS x WHERE x.feed_id = h.id ORDER BY x.seq LIMIT %(limit)s::int) AS e
  WHERE e.over
  LIMIT %(limit)s::int
), gone AS (
  DELETE FROM {schema}.feed_entries AS e USING old AS o WHERE e.feed_id = o.id AND e.seq = o.seq RETURNING e.seq
), kept AS MATERIALIZED (
  SELECT h.id, (SELECT e.appended_at FROM {schema}.feed_entries AS e
    WHERE e.feed_id = h.id AND e.seq > coalesce(max(o.seq), 0) ORDER BY e.seq LIMIT 1) AS since
  FROM unnest(%(feed_ids)s::bigint[]) AS h (id) LEFT JOIN old AS o ON o.id = h.id
  GROUP BY h.id
), moved AS (
  UPDATE {schema}.feeds AS f SET oldest_at = k.since FROM kept AS k WHERE f.id = k.id AND f.oldest_at <> k.since
), forgotten AS (
  DELETE FROM {schema}.feeds AS f USING kept AS k WHERE f.id = k.id AND k.since IS NULL
)
SELECT g.seq FROM gone AS g
