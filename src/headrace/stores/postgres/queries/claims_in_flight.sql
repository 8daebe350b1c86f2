-- Transactions that may hold jobs claimed by what they saw before their queue was gated, while one of these caps is new:
-- a statement that claims has locked the table before it looks, and what only inserts jobs locks it otherwise.
-- Of those `among`, if given, the ones that have not ended.
-- Locks: none. Index: none, the server's table of locks; primary key of limits.
SELECT DISTINCT l.virtualtransaction AS id
FROM pg_locks AS l
WHERE l.locktype = 'relation' AND l.relation = to_regclass('{schema}.jobs') AND l.mode = 'RowShareLock' AND l.granted
  AND l.database = (SELECT d.oid FROM pg_database AS d WHERE d.datname = current_database())
  AND (%(among)s::text[] IS NULL OR l.virtualtransaction = ANY(%(among)s::text[]))
  AND EXISTS (SELECT FROM unnest(%(caps)s::text[]) AS c (key)
    WHERE NOT EXISTS (SELECT FROM {schema}.limits AS k WHERE k.key = c.key))
