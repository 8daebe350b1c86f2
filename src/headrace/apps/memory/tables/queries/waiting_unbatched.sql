-- List flushes that may be summarised together with others, oldest first, with what their priority is made of.
-- Locks: none. Index: flushes_unbatched, primary key of users.
SELECT f.id, f.user_id, f.blob_ids, f.tokens, f.number, f.state, f.reason, f.created_at, f.round, u.level, u.language
FROM {schema}.flushes AS f JOIN {schema}.users AS u ON u.id = f.user_id
WHERE f.state = 'waiting' AND f.batch_id IS NULL AND f.summary IS NULL AND f.fence = 0 AND f.reason <> 'explicit'
ORDER BY f.created_at, f.id LIMIT %(limit)s::int
