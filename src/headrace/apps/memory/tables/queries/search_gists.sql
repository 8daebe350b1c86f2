-- Find gists of a user by their words, best first: any of the words will do, and more are better. The operators between
-- the words are those of the server's own text of the query, no part of a word: no word has a space in it.
-- Locks: none. Index: user_event_gists_user or user_event_gists_words, whichever finds fewer.
WITH asked AS MATERIALIZED (
  SELECT replace(plainto_tsquery('english', %(words)s::text)::text, ' & ', ' | ')::tsquery
    || replace(plainto_tsquery('simple', %(pieces)s::text)::text, ' & ', ' | ')::tsquery AS query
)
SELECT g.event_id, g.number, g.content, g.created_at,
  ts_rank(g.words, (SELECT query FROM asked), 1)::float8 AS score
FROM {schema}.user_event_gists AS g
WHERE g.user_id = %(user_id)s::text AND g.words @@ (SELECT query FROM asked)
ORDER BY score DESC, g.created_at DESC, g.event_id, g.number LIMIT %(limit)s::int
