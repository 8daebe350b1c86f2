-- Open model calls: see the function in schema.sql. Those that wait for one another's keys, pools or budgets take turns.
-- Locks: of the transaction, named after the keys, the pools with limits and the scopes with budgets, in the order of
-- their numbers; then live calls of dead sessions by id, then the sums of their scopes in order. No other row that is
-- there waits, so scopes without a budget hold nobody up.
-- Index: the keys, calls_held, calls_in_flight.
SELECT * FROM {schema}.open_calls(%(session)s::uuid, %(ids)s::uuid[], %(keys)s::text[], %(pools)s::text[],
  %(providers)s::text[], %(models)s::text[], %(purposes)s::text[], %(jobs)s::uuid[], %(batches)s::uuid[],
  %(runs)s::uuid[], %(tenants)s::text[], %(scope_lists)s::text[], %(prompts)s::bigint[], %(mosts)s::bigint[],
  %(most_nanos)s::bigint[], %(sends)s::boolean[], %(freshes)s::boolean[], %(flight_limits)s::int[],
  %(day_limits)s::int[], %(now)s::timestamptz)
