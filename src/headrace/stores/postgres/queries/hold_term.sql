-- Hold a term of leadership that is current, for the writes of the leader that follow in this transaction; no row: it is
-- over. Another session cannot begin a term before they are committed.
-- Locks: the one leader row, shared. Index: none needed.
SELECT term FROM {schema}.leader
WHERE session = %(session)s AND term = %(term)s AND expires_at > coalesce(%(now)s::timestamptz, now())
FOR SHARE
