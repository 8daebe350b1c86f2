-- List flushes that may be summarised together with others, oldest first, with what their priority is made of. Without
-- a language of the user's it is told by the first messages: Chinese where one of ten characters is.
-- Locks: none. Index: flushes_unbatched, primary keys of users and general_blobs.
SELECT f.id, f.user_id, f.blob_ids, f.tokens, f.number, f.state, f.reason, f.created_at, f.round, f.error, u.level,
  coalesce(u.language, (
    SELECT CASE WHEN regexp_count(begin.said, '[\u4e00-\u9fff]') * 10 > length(begin.said) THEN 'zh' ELSE 'en' END
    FROM (SELECT left(b.blob_data::text, 1000) AS said FROM {schema}.general_blobs AS b WHERE b.id = f.blob_ids[1])
      AS begin
  ), 'en') AS language
FROM {schema}.flushes AS f JOIN {schema}.users AS u ON u.id = f.user_id
WHERE f.state = 'waiting' AND f.batch_id IS NULL AND f.summary IS NULL AND f.fence = 0 AND f.reason <> 'explicit'
  AND f.round = 0 AND f.tokens <= %(most_tokens)s::int AND f.created_at <= now() - %(waited)s::interval
ORDER BY f.created_at, f.id LIMIT %(limit)s::int
