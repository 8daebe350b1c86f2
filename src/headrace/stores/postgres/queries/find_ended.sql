-- Whether a search for jobs of ended sessions is due, when it begins, and how many pages the hot table has. A session is
-- searched for at its end and then whenever the time since has doubled, until it is swept: by all workers together.
-- Locks: none. Index: none, one row per worker start of a day.
SELECT t.now AS began_at, pg_relation_size('{schema}.jobs') / current_setting('block_size')::bigint AS pages,
  EXISTS (SELECT FROM {schema}.sessions AS s
    WHERE NOT s.swept AND s.expires_at <= t.now
      AND (s.searched_at IS NULL OR t.now - s.searched_at > s.searched_at - s.expires_at)) AS due
FROM (SELECT coalesce(%(now)s::timestamptz, now()) AS now) AS t
