-- Remove tags of fair keys that say nothing any more: such a key starts at the virtual time, as one without a tag does.
-- They are looked for once, as in prune_inbox.
-- Locks: the removed rows, skipping locked ones: an admission writes them. Index: primary keys.
WITH old AS MATERIALIZED (
  SELECT o.queue, o.fair_key FROM {schema}.shares AS o JOIN {schema}.gates AS g ON g.queue = o.queue
  WHERE o.weight IS NULL AND o.finish <= g.virtual LIMIT %(limit)s::int FOR UPDATE OF o SKIP LOCKED
)
DELETE FROM {schema}.shares AS s USING old
WHERE s.queue = old.queue AND s.fair_key = old.fair_key
RETURNING s.fair_key
