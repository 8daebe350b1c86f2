-- Show every schedule with its last fire.
-- Locks: none. Index: schedule_fires_history for each.
SELECT s.name, s.definition, s.paused, s.declared_at > t.now - %(declared_for)s::interval AS declared, s.declared_at,
  s.after_at, s.next_at, l.fire_at, l.job_id, l.fired_at, l.manual
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t, {schema}.schedules AS s
LEFT JOIN LATERAL (
  SELECT f.fire_at, f.job_id, f.fired_at, f.manual FROM {schema}.schedule_fires AS f WHERE f.schedule = s.name
  ORDER BY f.fired_at DESC, f.fire_at DESC, f.job_id DESC LIMIT 1) AS l ON true
ORDER BY s.name COLLATE "C"
