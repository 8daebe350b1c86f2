-- End live model calls of sessions that are missing or have expired: see lose_calls in schema.sql.
-- Locks: the calls by id, then the sums of their scopes in order. Index: calls_in_flight, then the keys.
SELECT {schema}.lose_calls(ARRAY(
  SELECT c.id FROM {schema}.calls AS c
  WHERE c.state IN ('prepared', 'sent', 'received') AND NOT EXISTS (SELECT FROM {schema}.sessions AS s
    WHERE s.id = c.session AND s.expires_at > coalesce(%(now)s::timestamptz, now()))
  ORDER BY c.id LIMIT %(limit)s::int), coalesce(%(now)s::timestamptz, now())) AS ended
