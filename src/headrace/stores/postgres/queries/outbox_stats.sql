-- How full the outbox is, and for how long its first waiting row has been there.
-- Locks: none. Index: event_outbox_waiting, event_outbox_held, event_outbox_parked.
SELECT (SELECT count(*) FROM {schema}.event_outbox WHERE state = 'waiting') AS waiting,
  (SELECT count(*) FROM {schema}.event_outbox WHERE state = 'held') AS held,
  (SELECT count(*) FROM {schema}.event_outbox WHERE state = 'parked') AS parked,
  coalesce((SELECT greatest(extract(epoch FROM coalesce(%(now)s::timestamptz, now()) - created_at), 0)
    FROM {schema}.event_outbox WHERE state = 'waiting' ORDER BY position LIMIT 1), 0)::float8 AS oldest_seconds
