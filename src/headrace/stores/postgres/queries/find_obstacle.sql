-- The first thing that keeps a lane from being served, by the predicate of admission, with its numbers; no row: nothing.
-- Locks: none. Index: jobs_started and jobs_keeping to count, primary keys.
SELECT o.kind, o.name, o.units, o.room, nullif(o.until, 'infinity') AS until, b.state AS breaker,
  coalesce(l.override, l.cap, (%(lane)s::text::jsonb ->> 'key_limit')::int) AS cap,
  CASE WHEN o.kind = 'key' AND %(lane)s::text ~ '"key_limit":1[,}]' THEN (
    SELECT h.id FROM {schema}.jobs AS h
    WHERE h.queue = %(queue)s AND h.lane IS NOT NULL AND h.lane LIKE '%"key":%'
      AND (h.state = 'running' OR h.state IN ('scheduled', 'parked') AND h.attempt > 0 AND h.lane ~ '"key_limit":1[,}]')
      AND h.lane::jsonb ->> 'key' = o.name
    ORDER BY h.id LIMIT 1) END AS held_by
FROM {schema}.obstacles(%(queue)s, %(lane)s::text::jsonb, coalesce(%(cost)s::float8, 1),
    coalesce(%(now)s::timestamptz, now()), %(levels)s::text::jsonb) AS o
  LEFT JOIN {schema}.breakers AS b ON o.kind = 'breaker' AND b.key = o.name
  LEFT JOIN {schema}.limits AS l
    ON l.key = CASE o.kind WHEN 'running' THEN o.name WHEN 'key' THEN 'key:' || %(queue)s::text || ':' || o.name END
ORDER BY array_position(ARRAY['breaker', 'rate', 'running', 'key'], o.kind), o.name COLLATE "C" LIMIT 1
