-- The API token with a digest.
-- Locks: none. Index: api_tokens_digest.
SELECT t.*, t.expires_at <= coalesce(%(now)s::timestamptz, now()) AS over FROM {schema}.api_tokens AS t
WHERE t.digest = %(digest)s
