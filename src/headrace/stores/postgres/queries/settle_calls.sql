-- Record how model calls ended, with their answers, and add up what they cost: see the function in schema.sql.
-- Locks: the calls by id, then answers by key, then the sums of the scopes in order, which others wait for until this is
-- committed.
-- Index: the keys.
SELECT * FROM {schema}.settle_calls(%(ids)s::uuid[], %(states)s::text[], %(keys)s::text[], %(pools)s::text[],
  %(providers)s::text[], %(models)s::text[], %(purposes)s::text[], %(jobs)s::uuid[], %(batches)s::uuid[],
  %(runs)s::uuid[], %(tenants)s::text[], %(scope_lists)s::text[], %(prompts)s::bigint[], %(mosts)s::bigint[],
  %(most_nanos)s::bigint[], %(replies)s::text[], %(replaces)s::boolean[], %(inputs)s::bigint[], %(outputs)s::bigint[],
  %(cacheds)s::bigint[], %(answereds)s::int[], %(costs)s::bigint[], %(unpriceds)s::int[], %(tables)s::text[],
  %(errors)s::text[], %(request_ids)s::text[], %(now)s::timestamptz)
