-- Read parked rows, the oldest first, with how many of their key wait behind.
-- Locks: none. Index: event_outbox_parked, event_outbox_held, primary key of the log.
SELECT p.position, p.topic, p.key, p.event_id, e.type, p.error, p.parked_at,
  (SELECT count(*) FROM {schema}.event_outbox AS h
    WHERE h.state = 'held' AND h.topic = p.topic AND md5(h.key) = md5(p.key) AND h.key = p.key) AS held
FROM (SELECT * FROM {schema}.event_outbox WHERE state = 'parked' ORDER BY parked_at, position LIMIT %(limit)s::int) AS p
  LEFT JOIN {schema}.events AS e ON e.id = p.event_id
ORDER BY p.parked_at, p.position
