-- Store an API token, once per id.
-- Locks: the new row. Index: primary key.
INSERT INTO {schema}.api_tokens (id, name, digest, shown, scopes, created_at, expires_at)
SELECT %(token_id)s, %(name)s, %(digest)s, %(shown)s, %(scopes)s::text[], c.now, c.now + %(lifetime)s::interval
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS c
ON CONFLICT (id) DO NOTHING
