-- Note actions of the audit, once per id; ages are how long ago each was done.
-- Locks: the new rows. Index: primary key.
INSERT INTO {schema}.actions
  (id, done_at, token_id, status, via, who, address, operation, subject, detail)
SELECT g.id, coalesce(%(now)s::timestamptz, now()) - g.age, g.token_id, g.status, g.via, g.who, g.address, g.operation,
  g.subject::json, g.detail::json
FROM unnest(%(ids)s::uuid[], %(ages)s::interval[], %(token_ids)s::uuid[], %(statuses)s::smallint[], %(vias)s::text[],
    %(names)s::text[], %(addresses)s::text[], %(operations)s::text[], %(subjects)s::text[], %(details)s::text[])
  AS g (id, age, token_id, status, via, who, address, operation, subject, detail)
ON CONFLICT (id) DO NOTHING
