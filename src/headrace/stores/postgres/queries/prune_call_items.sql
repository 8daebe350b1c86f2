-- Remove parts of streamed answers that nobody went on with for as long as answers are kept.
-- Locks: the removed rows. Index: call_items_age, primary key.
DELETE FROM {schema}.call_items AS i
USING (SELECT key, number FROM {schema}.call_items
  WHERE created_at <= coalesce(%(now)s::timestamptz, now()) - %(retention)s::interval
  ORDER BY created_at LIMIT %(limit)s::int) AS old
WHERE i.key = old.key AND i.number = old.number
RETURNING i.number
