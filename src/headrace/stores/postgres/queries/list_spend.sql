-- What was spent, added up by the names of one kind of scope, or by day; with calls in flight, orphans and errors.
-- `first` and `last` bound the scopes of the kind. The sums are read, not the calls: few rows, however many calls.
-- Locks: none. Index: primary key of spend, calls_in_flight.
WITH sums AS (
  SELECT CASE WHEN %(kind)s::text = 'day' THEN to_char(s.day, 'YYYY-MM-DD')
      ELSE substr(s.scope, length(%(kind)s) + 2) END AS name,
    s.error, sum(s.settled + s.orphaned) AS calls, sum(s.orphaned) AS orphaned, sum(s.answered) AS answered,
    sum(s.input_tokens) AS input_tokens, sum(s.output_tokens) AS output_tokens, sum(s.cached_tokens) AS cached_tokens,
    sum(s.cost_nano) AS cost_nano, sum(s.unpriced) AS unpriced, sum(s.lost_nano) AS lost_nano,
    sum(s.lost_unpriced) AS lost_unpriced
  FROM {schema}.spend AS s
  WHERE s.scope >= %(first)s::text AND s.scope < %(last)s::text
    AND (%(since)s::date IS NULL OR s.day >= %(since)s::date)
  GROUP BY 1, 2
), ended AS (
  SELECT s.name, sum(s.orphaned) AS orphaned, sum(s.answered) AS answered, sum(s.input_tokens) AS input_tokens,
    sum(s.output_tokens) AS output_tokens, sum(s.cached_tokens) AS cached_tokens, sum(s.cost_nano) AS cost_nano,
    sum(s.unpriced) AS unpriced, sum(s.lost_nano) AS lost_nano, sum(s.lost_unpriced) AS lost_unpriced,
    json_object_agg(s.error, s.calls) FILTER (WHERE s.error <> '' AND s.calls > 0) AS errors
  FROM sums AS s GROUP BY s.name
), live AS (
  SELECT CASE WHEN %(kind)s::text = 'day' THEN to_char(c.day, 'YYYY-MM-DD')
      ELSE substr(u.scope, length(%(kind)s) + 2) END AS name, count(*) AS calls
  FROM {schema}.calls AS c, unnest(c.scopes) AS u (scope)
  WHERE c.state IN ('prepared', 'sent', 'received') AND u.scope COLLATE "C" >= %(first)s::text
    AND u.scope COLLATE "C" < %(last)s::text AND (%(since)s::date IS NULL OR c.day >= %(since)s::date)
  GROUP BY 1
)
SELECT coalesce(e.name, l.name) AS name, coalesce(l.calls, 0) AS in_flight, coalesce(e.orphaned, 0)::bigint AS orphaned,
  coalesce(e.answered, 0)::bigint AS answered, coalesce(e.input_tokens, 0)::bigint AS input_tokens,
  coalesce(e.output_tokens, 0)::bigint AS output_tokens, coalesce(e.cached_tokens, 0)::bigint AS cached_tokens,
  coalesce(e.cost_nano, 0)::bigint AS cost_nano, coalesce(e.unpriced, 0)::bigint AS unpriced,
  coalesce(e.lost_nano, 0)::bigint AS lost_nano, coalesce(e.lost_unpriced, 0)::bigint AS lost_unpriced, e.errors
FROM ended AS e FULL JOIN live AS l ON l.name = e.name
ORDER BY coalesce(e.cost_nano, 0) + coalesce(e.lost_nano, 0) DESC, coalesce(e.name, l.name) COLLATE "C"
LIMIT %(limit)s::bigint
