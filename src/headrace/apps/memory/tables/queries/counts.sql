-- Count flushes that are not done and their rows by state, and the rows that wait in buffers (state buffered).
-- Locks: none. Index: flushes_unfinished, flushes_ended, buffer_zone_waiting.
SELECT state, count(*) AS flushes, coalesce(sum(cardinality(blob_ids)), 0) AS rows
FROM {schema}.flushes WHERE state IN ('waiting', 'processing') GROUP BY state
UNION ALL
SELECT 'failed', count(*), coalesce(sum(cardinality(blob_ids)), 0) FROM {schema}.flushes WHERE state = 'failed'
UNION ALL
SELECT 'buffered', 0, count(*) FROM {schema}.buffer_zone WHERE flush_id IS NULL
