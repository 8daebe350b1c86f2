-- Hold the handle of a token, for its end, and tell whether its time is over.
-- Locks: the row. Index: flow_resume_handles_token.
SELECT h.*, h.expires_at <= coalesce(%(now)s::timestamptz, now()) AS overdue
FROM {schema}.flow_resume_handles AS h
WHERE h.token_hash = %(token_hash)s AND h.token_hash <> ''
FOR UPDATE
