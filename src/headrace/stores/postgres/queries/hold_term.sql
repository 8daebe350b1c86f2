-- Hold a term of leadership that is current, for the writes of the leader that follow in this transaction; no row: it is
-- over. Another session cannot begin a term of this role before they are committed.
-- Locks: the leader row of the role, shared. Index: primary key.
SELECT term FROM {schema}.leader
WHERE one = %(role)s AND session = %(session)s AND term = %(term)s AND expires_at > coalesce(%(now)s::timestamptz, now())
FOR SHARE
