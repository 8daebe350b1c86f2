-- Let nothing of a bucket pass for a time; one that is closed for longer stays so. It need not have a rate.
-- Locks: the row. Index: primary key.
INSERT INTO {schema}.rates AS r (name, at, closed_until)
VALUES (%(name)s, coalesce(%(now)s::timestamptz, now()), coalesce(%(now)s::timestamptz, now()) + %(wait)s::interval)
ON CONFLICT (name) DO UPDATE SET closed_until = greatest(r.closed_until, excluded.closed_until)
