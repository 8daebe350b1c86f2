-- The API token with an id.
-- Locks: none. Index: primary key.
SELECT t.*, t.expires_at <= coalesce(%(now)s::timestamptz, now()) AS over FROM {schema}.api_tokens AS t
WHERE t.id = %(token_id)s
