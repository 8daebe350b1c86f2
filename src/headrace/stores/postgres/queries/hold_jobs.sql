-- Hold ready jobs of a paused batch: parked on what no signal is called, so that neither claims nor admissions nor the
-- stager meet them. They keep their place.
-- Locks: the batch row, shared: a resume waits for it; the job rows, skipping locked ones (a claim that is committing).
-- Index: primary keys, jobs_batch.
WITH paused AS MATERIALIZED (
  SELECT b.id FROM {schema}.batches AS b WHERE b.id = %(batch_id)s AND b.paused_at IS NOT NULL FOR SHARE
)
UPDATE {schema}.jobs AS j SET state = 'parked', parked_on = chr(31) || j.batch_id, run_at = NULL
WHERE j.id = ANY(ARRAY(
  SELECT r.id FROM {schema}.jobs AS r
  WHERE r.batch_id = %(batch_id)s AND r.state = 'ready' AND EXISTS (SELECT FROM paused)
  LIMIT %(limit)s::int FOR UPDATE SKIP LOCKED))
RETURNING j.id
