-- Append entries to a feed, and say of each its number and whether it is new: see the function in schema.sql.
-- Locks: the row of the feed; appends to one feed take turns. Index: feeds_name, feed_entries_key.
SELECT a.* FROM {schema}.append_entries(%(feed)s::text, %(types)s::text[], %(texts)s::text[], %(keys)s::text[],
  %(now)s::timestamptz) AS a
