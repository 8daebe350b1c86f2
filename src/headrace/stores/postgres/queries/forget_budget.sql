-- Remove the budget of a scope; what was spent stays counted.
-- Locks: the row. Index: primary key.
DELETE FROM {schema}.budgets WHERE scope = %(scope)s
