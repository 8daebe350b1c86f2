-- Record prepared model calls as sent; returns those that are live, also when they were sent before.
-- Locks: the calls by id. Index: primary key.
WITH live AS MATERIALIZED (
  SELECT c.id, c.state FROM {schema}.calls AS c
  WHERE c.id = ANY(%(ids)s::uuid[]) AND c.state IN ('prepared', 'sent', 'received') ORDER BY c.id FOR UPDATE
), sent AS (
  UPDATE {schema}.calls AS c SET state = 'sent' FROM live AS l WHERE c.id = l.id AND l.state = 'prepared'
)
SELECT l.id FROM live AS l
