-- How many jobs of a queue are not final, by state. Exact, and so a scan: for the end of a drain, which an operator waits
-- for, and not for anything that runs by itself.
-- Locks: none. Index: none; reads the whole hot table.
SELECT state, count(*) AS jobs FROM {schema}.jobs WHERE queue = %(queue)s::text GROUP BY state
