-- What the server is and how durable it was set up.
-- Locks: none. Index: none.
SELECT current_setting('server_version') AS version, current_setting('fsync') = 'on' AS fsync,
  current_setting('synchronous_commit') AS synchronous_commit, current_setting('full_page_writes') = 'on' AS full_page_writes,
  current_setting('synchronous_standby_names') <> '' AS synchronous_standby,
  coalesce(%(now)s::timestamptz, now()) AS now, (SELECT max(version) FROM {schema}.migrations) AS schema_version
