-- Close or open the intake of a queue. Inserts do not look: who enqueues asks queue_states once a second.
-- Locks: the queue's row. Index: primary key.
INSERT INTO {schema}.queues (name, closed) VALUES (%(queue)s, %(closed)s::boolean)
ON CONFLICT (name) DO UPDATE SET closed = excluded.closed
