-- The live sessions of one host, so that a neighbour can see which of their processes are gone.
-- Locks: none. Index: none, the table has one row per worker start of a day.
SELECT id, host, pid, start_time FROM {schema}.sessions
WHERE host = %(host)s AND expires_at > coalesce(%(now)s::timestamptz, now())
