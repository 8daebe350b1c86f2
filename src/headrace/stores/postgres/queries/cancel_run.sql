-- Start cancelling a run; no row: it is not running. Whoever settles jobs of it is waited for.
-- Locks: the run. Index: primary key.
UPDATE {schema}.runs SET state = 'cancelling' WHERE id = %(run_id)s AND state IS NOT DISTINCT FROM 'running'
RETURNING id
