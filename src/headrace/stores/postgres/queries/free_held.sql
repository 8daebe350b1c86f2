-- Let rows wait again whose key has no parked row any more; run after the parked ones went, in a snapshot of its own, so
-- that it sees what was held while those were waited for.
-- Locks: the rows, by topic and key as given (the caller sorts), then position. Index: event_outbox_held,
-- event_outbox_parked, primary key.
UPDATE {schema}.event_outbox AS o SET state = 'waiting'
WHERE o.state IS NOT DISTINCT FROM 'held' AND o.position = ANY(ARRAY(
  SELECT h.position FROM unnest(%(topics)s::text[], %(keys)s::text[]) AS k (topic, key)
    JOIN {schema}.event_outbox AS h
      ON h.state = 'held' AND h.topic = k.topic AND md5(h.key) = md5(k.key) AND h.key = k.key
  WHERE NOT EXISTS (
    SELECT FROM {schema}.event_outbox AS p
    WHERE p.state = 'parked' AND p.topic = k.topic AND md5(p.key) = md5(k.key) AND p.key = k.key OFFSET 0)
  FOR UPDATE OF h))
