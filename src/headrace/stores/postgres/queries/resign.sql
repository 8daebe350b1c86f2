-- Give leadership up, if this term still holds it. The row stays, so that terms never repeat.
-- Locks: the leader row of the role. Index: primary key.
UPDATE {schema}.leader SET expires_at = coalesce(%(now)s::timestamptz, now())
WHERE session = %(session)s AND term = %(term)s AND one = %(role)s AND expires_at > coalesce(%(now)s::timestamptz, now())
