-- Note that the call of a batch is over: flushes of it that got no summary ask for themselves. Returns the users of
-- all.
-- Locks: the flushes by id, the batch. Index: primary key of batches, primary key.
WITH mine AS MATERIALIZED (
  SELECT f.id, f.user_id, f.summary FROM {schema}.flushes AS f
  WHERE f.id IN (SELECT unnest(b.flush_ids) FROM {schema}.batches AS b WHERE b.id = %(batch_id)s::uuid)
    AND f.state IN ('waiting', 'processing')
  ORDER BY f.id FOR UPDATE
), left_alone AS (
  UPDATE {schema}.flushes AS f SET alone = true FROM mine WHERE f.id = mine.id AND mine.summary IS NULL
), noted AS (
  UPDATE {schema}.batches SET ended_at = now(), called_ms = %(called_ms)s::float8
  WHERE id = %(batch_id)s::uuid AND ended_at IS NULL
)
SELECT DISTINCT user_id FROM mine
