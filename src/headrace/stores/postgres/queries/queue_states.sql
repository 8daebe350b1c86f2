-- What is set of queues. Whoever enqueues asks once a second: a table of a few rows.
-- Locks: none. Index: none; reads the whole table.
SELECT name, paused, reason, closed, alarm_size, alarm_age FROM {schema}.queues
