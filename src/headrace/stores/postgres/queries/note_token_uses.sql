-- Note that API tokens were used, to the minute; those noted in this minute are left alone.
-- Locks: the rows, in the order of their ids. Index: primary key.
UPDATE {schema}.api_tokens AS t SET used_at = h.minute
FROM (SELECT a.id, date_trunc('minute', coalesce(%(now)s::timestamptz, now())) AS minute FROM {schema}.api_tokens AS a
  WHERE a.id = ANY(%(token_ids)s::uuid[]) ORDER BY a.id FOR UPDATE) AS h
WHERE t.id = h.id AND t.used_at IS DISTINCT FROM h.minute
