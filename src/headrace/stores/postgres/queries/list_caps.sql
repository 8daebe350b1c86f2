-- Caps and what runs under each.
-- Locks: none. Index: jobs_started to count.
SELECT l.key, l.cap AS declared, l.override, CASE WHEN starts_with(l.key, 'key:') THEN coalesce((
    SELECT h.used FROM {schema}.held_keys(split_part(l.key, ':', 2)) AS h
    WHERE l.key = 'key:' || split_part(l.key, ':', 2) || ':' || h.key), 0)::int
  ELSE (coalesce(l.override, l.cap) - s.room)::int END AS running
FROM {schema}.limits AS l JOIN {schema}.gate_stands(
    (SELECT array_agg('running'::text) FROM {schema}.limits), (SELECT array_agg(k.key) FROM {schema}.limits AS k),
    coalesce(%(now)s::timestamptz, now()), NULL) AS s ON s.name = l.key
ORDER BY l.key COLLATE "C"
