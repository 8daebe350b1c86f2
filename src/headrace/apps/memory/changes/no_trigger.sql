-- Tell of changes no more: something else does, such as Debezium.
-- Locks: the table, briefly. Index: none.
DROP TRIGGER IF EXISTS tell_of_inserts ON {schema}.buffer_zone;
DROP TRIGGER IF EXISTS tell_of_updates ON {schema}.buffer_zone;
DROP FUNCTION IF EXISTS {schema}.tell_of_buffer_zone();
