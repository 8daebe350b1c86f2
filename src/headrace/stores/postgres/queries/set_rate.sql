-- Override the rate of a bucket, or return to the declared one (NULL); where there is no bucket, none is made
-- for that. It keeps its level, at most the burst in force.
-- Locks: the row. Index: primary key.
INSERT INTO {schema}.rates AS r (name, override_per_second, override_burst, at)
SELECT %(name)s::text, %(per_second)s::float8, %(burst)s::float8, coalesce(%(now)s::timestamptz, now())
WHERE %(per_second)s::float8 IS NOT NULL OR EXISTS (SELECT FROM {schema}.rates AS k WHERE k.name = %(name)s::text)
ON CONFLICT (name) DO UPDATE
SET override_per_second = excluded.override_per_second, override_burst = excluded.override_burst,
  at = greatest(r.at, excluded.at),
  level = least(coalesce(excluded.override_burst, r.burst),
    {schema}.level_at(r.level, r.at, coalesce(r.override_per_second, r.per_second), coalesce(r.override_burst, r.burst),
      excluded.at))
