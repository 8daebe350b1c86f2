-- Give back the names of an owner in a scope.
-- Locks: the removed rows. Index: known_names_owner.
DELETE FROM {schema}.known_names WHERE scope = %(scope)s AND owner = %(owner)s RETURNING position
