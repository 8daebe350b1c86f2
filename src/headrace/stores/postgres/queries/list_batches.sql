-- Batches, newest first: ids are time-ordered.
-- Locks: none. Index: primary key, backwards.
SELECT id, key, task, queue, state, outcome, total, round, max_failed, created_at, sealed_at, closed_at
FROM {schema}.batches ORDER BY id DESC LIMIT %(limit)s::int
