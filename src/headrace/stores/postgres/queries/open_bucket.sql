-- End the closing of a bucket.
-- Locks: the row. Index: primary key.
UPDATE {schema}.rates AS r SET closed_until = NULL WHERE r.name = %(name)s AND r.closed_until IS NOT NULL
