-- Register one start of a worker; its lease runs from the database's clock.
-- Locks: the new row. Index: primary key.
INSERT INTO {schema}.sessions (id, start_time, started_at, expires_at, pid, host, hostname, queues)
SELECT %(id)s, %(start_time)s, t.now, t.now + %(lease)s::interval, %(pid)s, %(host)s, %(hostname)s, %(queues)s::json
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
ON CONFLICT (id) DO NOTHING
