-- Become or stay the leader in a role: the row is ours, or its lease has ended. A new leader begins a new term.
-- Locks: the leader row of the role. Index: primary key.
INSERT INTO {schema}.leader AS l (one, session, term, expires_at)
VALUES (%(role)s, %(session)s, 1, coalesce(%(now)s::timestamptz, now()) + %(lease)s::interval)
ON CONFLICT (one) DO UPDATE
SET session = excluded.session, expires_at = excluded.expires_at,
  term = l.term + CASE WHEN l.session = excluded.session AND l.expires_at > coalesce(%(now)s::timestamptz, now())
    THEN 0 ELSE 1 END
WHERE l.session = excluded.session OR l.expires_at <= coalesce(%(now)s::timestamptz, now())
RETURNING l.term
