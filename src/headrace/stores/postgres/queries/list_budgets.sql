-- Budgets with what was spent and what live calls reserve; of the scope day today's. Without scopes: all that are set.
-- Locks: none. Index: primary keys, calls_in_flight.
WITH time AS (
  SELECT (coalesce(%(now)s::timestamptz, now()) AT TIME ZONE 'UTC')::date AS today
), chosen AS (
  SELECT b.scope FROM {schema}.budgets AS b WHERE %(scopes)s::text[] IS NULL
  UNION SELECT u.scope COLLATE "C" FROM unnest(%(scopes)s::text[]) AS u (scope)
), reserved AS (
  SELECT u.scope, sum(c.most_nano)::bigint AS nano, sum(c.prompt_tokens + c.most_tokens)::bigint AS tokens
  FROM time AS t, {schema}.calls AS c, unnest(c.scopes) AS u (scope)
  WHERE c.state IN ('prepared', 'sent', 'received') AND (u.scope <> 'day' OR c.day = t.today)
    AND u.scope IN (SELECT n.scope FROM chosen AS n)
  GROUP BY u.scope
)
SELECT n.scope, b.scope IS NOT NULL AS is_set, b.cost_nano AS cost_limit, b.tokens AS tokens_limit, p.nano, p.tokens,
  p.unpriced, coalesce(r.nano, 0) AS reserved_nano, coalesce(r.tokens, 0) AS reserved_tokens
FROM time AS t CROSS JOIN chosen AS n
  LEFT JOIN {schema}.budgets AS b ON b.scope = n.scope
  LEFT JOIN reserved AS r ON r.scope = n.scope
  CROSS JOIN LATERAL (SELECT coalesce(sum(s.cost_nano + s.lost_nano), 0)::bigint AS nano,
      coalesce(sum(s.input_tokens + s.output_tokens + s.lost_tokens), 0)::bigint AS tokens,
      coalesce(sum(s.unpriced + s.lost_unpriced), 0)::bigint AS unpriced
    FROM {schema}.spend AS s WHERE s.scope = n.scope AND (n.scope <> 'day' OR s.day = t.today)) AS p
ORDER BY n.scope
