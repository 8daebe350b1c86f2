-- Let a migration take as long as it takes, whatever the server, the database or the user bound statements by. Older
-- servers know no transaction_timeout.
-- Locks: none. Index: none.
SELECT set_config(s.name, '0', true) FROM pg_settings AS s WHERE s.name IN ('statement_timeout', 'transaction_timeout')
