-- Batches, newest first. Ids are time-ordered to the millisecond, so some more are read by id and then sorted.
-- Locks: none. Index: primary key, backwards.
SELECT id, key, task, queue, state, outcome, total, round, max_failed, created_at, sealed_at, closed_at
FROM (SELECT * FROM {schema}.batches ORDER BY id DESC LIMIT %(limit)s::int + 100) AS b
ORDER BY created_at DESC, id DESC LIMIT %(limit)s::int
