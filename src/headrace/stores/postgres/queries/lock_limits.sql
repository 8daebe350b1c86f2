-- First half of a capped claim: let claimers of the same keys pass one by one. What runs is counted afterwards, in a
-- statement (and so a snapshot) of its own: locking and counting in one statement ran over a cap of 1.
-- Locks: the rows of the keys, in key order. Index: primary key.
SELECT key FROM {schema}.limits WHERE key = ANY(%(keys)s::text[]) ORDER BY key FOR UPDATE
