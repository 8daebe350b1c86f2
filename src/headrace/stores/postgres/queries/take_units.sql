-- Take units of buckets: of all what is wanted, or of none; with `some` of each what is there. What was added up by
-- level_at since the last change is written down with it. Buckets without a rate are left out of the answer: unknown.
-- Locks: the rows, by name. Index: primary key. The clock is read behind the locks.
WITH held AS MATERIALIZED (
  SELECT r.name, r.level, r.at, r.closed_until, w.units, coalesce(r.override_per_second, r.per_second) AS per_second,
    coalesce(r.override_burst, r.burst) AS burst
  FROM {schema}.rates AS r JOIN unnest(%(names)s::text[], %(units)s::float8[]) AS w (name, units) ON w.name = r.name
  WHERE r.burst IS NOT NULL OR r.override_burst IS NOT NULL
  ORDER BY r.name FOR UPDATE OF r
), seen AS MATERIALIZED (
  SELECT h.*, t.now, {schema}.level_at(h.level, h.at, h.per_second, h.burst, t.now) AS there
  FROM held AS h CROSS JOIN LATERAL (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now, h.name) AS t
), judged AS MATERIALIZED (
  SELECT s.*, {schema}.passes_at(s.units, s.there, s.burst, s.per_second, coalesce(s.closed_until, '-infinity'), s.now)
    AS until
  FROM seen AS s
), given AS MATERIALIZED (
  SELECT j.name, j.now, j.there, j.burst, j.until, CASE
    WHEN NOT %(some)s::boolean THEN CASE WHEN count(*) FILTER (WHERE j.until > '-infinity') OVER () = 0
      AND count(*) OVER () = cardinality(%(names)s::text[]) THEN j.units ELSE 0 END
    WHEN j.until = '-infinity' THEN j.units
    WHEN j.closed_until > j.now THEN 0
    ELSE least(j.units, greatest(0, j.there)) END AS units
  FROM judged AS j
), taken AS (
  UPDATE {schema}.rates AS r SET level = g.there - g.units, at = greatest(r.at, g.now)
  FROM given AS g WHERE r.name = g.name AND g.units > 0
)
SELECT g.name, g.units, CASE WHEN g.until = '-infinity' THEN interval '0' ELSE g.until - g.now END AS wait FROM given AS g
