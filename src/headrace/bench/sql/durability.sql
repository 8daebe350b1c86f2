-- The settings a commit's durability rests on, and what else tells servers apart.
SELECT name, setting FROM pg_settings
WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes', 'server_version', 'shared_buffers', 'wal_level',
  'max_wal_size', 'commit_delay', 'jit', 'autovacuum')
