-- Hold the handle of a token, for its end.
-- Locks: the row. Index: flow_resume_handles_token.
SELECT h.* FROM {schema}.flow_resume_handles AS h
WHERE h.token_hash = %(token_hash)s AND h.token_hash <> ''
FOR UPDATE
