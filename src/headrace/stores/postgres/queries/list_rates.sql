-- Buckets and their levels; zero without a rate.
-- Locks: none. Index: none, one row per rate limit.
SELECT r.name, r.per_second, r.burst, r.override_per_second, r.override_burst, coalesce(b.level, 0) AS level,
  r.closed_until
FROM {schema}.rates AS r CROSS JOIN LATERAL {schema}.bucket(r.name, coalesce(%(now)s::timestamptz, now())) AS b
ORDER BY r.name
