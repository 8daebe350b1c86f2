-- End the leases of sessions at once; a lease that has ended stays as it is.
-- Locks: the session rows. Index: primary key.
UPDATE {schema}.sessions SET expires_at = coalesce(%(now)s::timestamptz, now())
WHERE id = ANY(%(sessions)s::uuid[]) AND expires_at > coalesce(%(now)s::timestamptz, now())
