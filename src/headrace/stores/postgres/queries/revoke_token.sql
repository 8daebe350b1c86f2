-- Revoke an API token that was not; no row: it was, or there is none.
-- Locks: the row. Index: primary key.
UPDATE {schema}.api_tokens AS t SET revoked_at = coalesce(%(now)s::timestamptz, now())
WHERE t.id = %(token_id)s AND t.revoked_at IS NULL
