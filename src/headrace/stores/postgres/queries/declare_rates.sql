-- Store rates as an app declares them. A bucket keeps its level, at most the burst in force; a new one is full, or empty
-- where it may have been used up before it was forgotten.
-- Locks: the rows, in the order given (the caller sorts by name, as admission does). Index: primary key.
INSERT INTO {schema}.rates AS r (name, per_second, burst, level, at)
SELECT d.name, d.per_second, d.burst, CASE WHEN %(empty)s::boolean THEN 0 END, coalesce(%(now)s::timestamptz, now())
FROM unnest(%(names)s::text[], %(per_seconds)s::float8[], %(bursts)s::float8[])
  WITH ORDINALITY AS d (name, per_second, burst, place)
ORDER BY d.place
ON CONFLICT (name) DO UPDATE
SET per_second = excluded.per_second, burst = excluded.burst, at = greatest(r.at, coalesce(%(now)s::timestamptz, now())),
  level = least(coalesce(r.override_burst, excluded.burst), coalesce(
    {schema}.level_at(r.level, r.at, coalesce(r.override_per_second, r.per_second), coalesce(r.override_burst, r.burst),
      coalesce(%(now)s::timestamptz, now())), CASE WHEN %(empty)s::boolean THEN 0 END))
WHERE r.per_second IS DISTINCT FROM excluded.per_second OR r.burst IS DISTINCT FROM excluded.burst
