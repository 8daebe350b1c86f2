-- Leave the planner one way in this transaction, a nested loop through the keys (see docs/decisions/0001-hot-path.md):
-- for the hot statements behind a pooler, where the session's settings belong to everyone.
-- Locks: none. Index: none.
SELECT set_config('plan_cache_mode', 'force_generic_plan', true), set_config('enable_seqscan', 'off', true),
  set_config('enable_bitmapscan', 'off', true), set_config('enable_hashjoin', 'off', true),
  set_config('enable_mergejoin', 'off', true), set_config('enable_sort', 'off', true)
