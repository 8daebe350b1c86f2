-- API tokens, the newest first.
-- Locks: none. Index: api_tokens_newest.
SELECT t.*, t.expires_at <= coalesce(%(now)s::timestamptz, now()) AS over FROM {schema}.api_tokens AS t
ORDER BY t.created_at DESC, t.id DESC LIMIT %(limit)s::int
