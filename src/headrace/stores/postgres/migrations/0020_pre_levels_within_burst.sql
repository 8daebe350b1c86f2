-- A level that is counted elsewhere is never above the burst of here: a rate that was set anew is known here first. The code
-- of the release before does not mind.
CREATE OR REPLACE FUNCTION {schema}.bucket(bucket_name text, clock timestamptz, levels jsonb DEFAULT NULL)
RETURNS TABLE (level double precision, per_second double precision, burst double precision, closed_until timestamptz)
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN levels IS NULL THEN {schema}.level_at(r.level, r.at, f.per_second, f.burst, clock)
      ELSE least(f.burst, coalesce((levels #>> ARRAY[r.name, 'units'])::double precision, 0)) END,
    f.per_second, f.burst, CASE WHEN levels IS NULL THEN r.closed_until
      WHEN f.burst IS NOT NULL THEN clock + (levels #>> ARRAY[r.name, 'closed'])::interval END
  FROM {schema}.rates AS r CROSS JOIN LATERAL (
    SELECT CASE WHEN r.override_burst IS NULL THEN r.per_second ELSE r.override_per_second END AS per_second,
      CASE WHEN r.override_burst IS NULL THEN r.burst ELSE r.override_burst END AS burst) AS f
  WHERE r.name = bucket_name
$$;
