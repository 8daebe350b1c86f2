-- Take units of buckets: of all what is wanted, or of none; with `some` of each what is there, if that is its least.
-- What was added up by level_at since the last change is written down with it. Buckets without a rate are left out of
-- the answer: unknown. One that was written ahead of the clock stands at now: the clock was set back.
-- Locks: the rows, by name. Index: primary key. The clock is read behind the locks.
WITH held AS MATERIALIZED (
  SELECT r.name, r.level, r.at, coalesce(r.closed_until, '-infinity') AS again_at, w.units, w.least,
    coalesce(r.override_per_second, r.per_second) AS per_second, coalesce(r.override_burst, r.burst) AS burst
  FROM {schema}.rates AS r
    JOIN unnest(%(names)s::text[], %(units)s::float8[], %(leasts)s::float8[]) AS w (name, units, least)
      ON w.name = r.name
  WHERE r.burst IS NOT NULL OR r.override_burst IS NOT NULL
  ORDER BY r.name FOR UPDATE OF r
), seen AS MATERIALIZED (
  SELECT h.*, t.now, {schema}.level_at(h.level, h.at, h.per_second, h.burst, t.now) AS there
  FROM held AS h CROSS JOIN LATERAL (SELECT coalesce(%(now)s::timestamptz, clock_timestamp()) AS now, h.name) AS t
), given AS MATERIALIZED (
  SELECT s.*, CASE
    WHEN %(some)s::boolean THEN CASE
      WHEN {schema}.passes_at(s.least, s.there, s.burst, s.per_second, s.again_at, s.now) > '-infinity' THEN 0
      ELSE greatest(s.least, least(s.units, s.there)) END
    WHEN bool_and({schema}.passes_at(s.units, s.there, s.burst, s.per_second, s.again_at, s.now) = '-infinity') OVER ()
      AND count(*) OVER () = cardinality(%(names)s::text[]) THEN s.units
    ELSE 0 END AS given
  FROM seen AS s
), taken AS (
  UPDATE {schema}.rates AS r SET level = g.there - g.given, at = g.now
  FROM given AS g WHERE r.name = g.name AND (g.given > 0 OR r.at > g.now)
)
SELECT g.name, g.given AS units, CASE WHEN g.given >= g.units THEN interval '0' ELSE greatest(g.now,
  {schema}.passes_at(least(g.units - g.given, CASE WHEN g.least > 0 THEN g.least ELSE g.units END), g.there - g.given,
    g.burst, g.per_second, g.again_at, g.now)) - g.now END AS wait
FROM given AS g
