-- How buckets that have a rate stand: their levels, and for how long nothing passes.
-- Locks: none. Index: primary key.
SELECT n.name, b.level, greatest(b.closed_until, t.now) - t.now AS closed
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
  CROSS JOIN unnest(%(names)s::text[]) AS n (name) CROSS JOIN LATERAL {schema}.bucket(n.name, t.now) AS b
WHERE b.burst IS NOT NULL
