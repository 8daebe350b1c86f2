-- Make held jobs of a batch ready that is neither paused nor being cancelled, in the order of their places.
-- Locks: the batch row, shared: a pause waits for it; the job rows, skipping locked ones. Index: primary keys, jobs_parked.
WITH resumed AS MATERIALIZED (
  SELECT b.id FROM {schema}.batches AS b
  WHERE b.id = %(batch_id)s AND b.paused_at IS NULL AND b.state <> 'cancelling' FOR SHARE
)
UPDATE {schema}.jobs AS j SET state = 'ready', parked_on = NULL
WHERE j.id = ANY(ARRAY(
  SELECT h.id FROM {schema}.jobs AS h
  WHERE h.state = 'parked' AND h.parked_on = chr(31) || %(batch_id)s::uuid AND EXISTS (SELECT FROM resumed)
  ORDER BY h.sort_at, h.id LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))
RETURNING j.id
