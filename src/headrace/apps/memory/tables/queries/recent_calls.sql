-- List calls of batches that ended within a minute, the newest first: how long ago, how long they took, for how many.
-- Locks: none. Index: batches_called.
SELECT extract(epoch FROM now() - ended_at)::float8 AS ago, called_ms, cardinality(flush_ids) AS flushes
FROM {schema}.batches WHERE called_ms IS NOT NULL AND ended_at > now() - interval '1 minute'
ORDER BY ended_at DESC LIMIT 1000
