-- Set the budget of a scope in the place of an earlier one.
-- Locks: the row. Index: primary key.
INSERT INTO {schema}.budgets AS b (scope, cost_nano, tokens)
VALUES (%(scope)s, %(cost_nano)s::bigint, %(tokens)s::bigint)
ON CONFLICT (scope) DO UPDATE SET cost_nano = excluded.cost_nano, tokens = excluded.tokens
