-- Give units back to buckets; none holds more than its burst.
-- Locks: the rows, by name. Index: primary key.
WITH held AS MATERIALIZED (
  SELECT r.name, r.level, r.at, coalesce(r.override_per_second, r.per_second) AS per_second,
    coalesce(r.override_burst, r.burst) AS burst, g.units
  FROM {schema}.rates AS r JOIN unnest(%(names)s::text[], %(units)s::float8[]) AS g (name, units) ON g.name = r.name
  ORDER BY r.name FOR UPDATE OF r
)
UPDATE {schema}.rates AS r
SET level = least(h.burst, {schema}.level_at(h.level, h.at, h.per_second, h.burst, t.now) + h.units),
  at = t.now
FROM held AS h CROSS JOIN LATERAL (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now, h.name) AS t
WHERE r.name = h.name AND h.burst IS NOT NULL
