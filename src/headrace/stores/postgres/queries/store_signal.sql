-- Store a signal, once per key; no row: the key had one. A key that a job which parks is making is waited for.
-- Locks: the row of the key, to the end of the transaction, in which wake_jobs follows. Index: primary key.
INSERT INTO {schema}.signals AS s (key, payload, sent_at, created_at)
SELECT %(key)s, %(payload)s::text::json, t.now, t.now FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, sent_at = excluded.sent_at WHERE s.payload IS NULL
RETURNING s.key
