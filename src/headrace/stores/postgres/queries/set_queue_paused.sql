-- Pause or resume claims of a queue.
-- Locks: the queue's row. Index: primary key.
INSERT INTO {schema}.queues (name, paused, reason) VALUES (%(queue)s, %(paused)s::boolean, %(reason)s)
ON CONFLICT (name) DO UPDATE SET paused = excluded.paused, reason = excluded.reason
