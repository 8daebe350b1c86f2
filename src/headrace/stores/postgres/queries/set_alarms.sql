-- Set when the backlog of queues is an alarm, as an app declares it; a worker does at its start, so rows that say the
-- same already are left alone.
-- Locks: the queues' rows, by name. Index: primary key.
INSERT INTO {schema}.queues AS q (name, alarm_size, alarm_age)
SELECT a.name, a.size, a.age FROM unnest(%(queues)s::text[], %(sizes)s::int[], %(ages)s::interval[]) AS a (name, size, age)
ORDER BY a.name
ON CONFLICT (name) DO UPDATE SET alarm_size = excluded.alarm_size, alarm_age = excluded.alarm_age
WHERE (q.alarm_size, q.alarm_age) IS DISTINCT FROM (excluded.alarm_size, excluded.alarm_age)
