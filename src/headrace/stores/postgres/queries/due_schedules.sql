-- Find the schedules with work to do, what the time is, and when the next one comes: always at least one row.
-- Locks: none. Index: none needed, there are few.
SELECT t.now, (SELECT min(a.next_at) FROM {schema}.schedules AS a
    WHERE NOT a.paused AND a.declared_at > t.now - %(declared_for)s::interval AND a.next_at > t.now) AS ahead,
  s.name, s.definition, s.after_at
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
LEFT JOIN {schema}.schedules AS s ON NOT s.paused AND s.declared_at > t.now - %(declared_for)s::interval
  AND (s.next_at IS NULL OR s.next_at <= t.now OR s.after_at > t.now)
ORDER BY s.next_at NULLS FIRST, s.name LIMIT %(limit)s::int
