-- Tell of rows that wait in a buffer: one message each, in Debezium's envelope without a schema, put into the outbox in the
-- transaction of the change. One call per statement, however many rows it changed. Rows that wait no more or are bound to a
-- flush are memory's own doing, and not told.
--
-- A change is known again by its position in the log of the database, its key and its operation. The position is that
-- behind what the statement wrote, so that two changes of a row in one transaction have two.
-- Its owner may write to the outbox, and so who inserts into the table need not. It looks for names nowhere else.
-- Locks: the new rows of the outbox. Index: those of insert_events.
CREATE OR REPLACE FUNCTION {schema}.tell_of_buffer_zone() RETURNS trigger LANGUAGE plpgsql
SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET timezone = 'UTC' AS $$
DECLARE
  stamp constant bigint := extract(epoch FROM clock_timestamp()) * 1000;
  op constant text := CASE TG_OP WHEN 'INSERT' THEN 'c' ELSE 'u' END;
  source constant json := json_build_object(
    'version', 'headrace', 'connector', 'postgresql', 'name', '{prefix}', 'ts_ms', stamp, 'snapshot', 'false',
    'db', current_database(), 'sequence', NULL, 'schema', '{name}', 'table', 'buffer_zone',
    'txId', pg_current_xact_id()::text::bigint, 'lsn', (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::bigint,
    'xmin', NULL);
BEGIN
  PERFORM {headrace}.insert_events(
    ids => array_agg(gen_random_uuid()),
    topics => array_agg('{topic}'::text),
    keys => array_agg(json_build_object('id', c.id)::text ORDER BY c.created_at, c.id),
    raws => array_agg(true),
    types => '{}', aggregate_types => '{}', aggregate_ids => '{}', correlation_ids => '{}', causation_ids => '{}',
    times => '{}', schema_versions => '{}', retry_counts => '{}', payloads => '{}',
    messages => array_agg(convert_to(json_build_object('before', NULL, 'after', row_to_json(c), 'source', source,
      'transaction', NULL, 'op', op, 'ts_ms', stamp)::text, 'UTF8') ORDER BY c.created_at, c.id),
    header_lists => array_agg('[]'::text),
    clock => NULL)
  FROM changed AS c WHERE c.status = 'idle' AND c.flush_id IS NULL
  HAVING count(*) > 0;
  RETURN NULL;
END
$$;

CREATE OR REPLACE TRIGGER tell_of_inserts AFTER INSERT ON {schema}.buffer_zone
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {schema}.tell_of_buffer_zone();

CREATE OR REPLACE TRIGGER tell_of_updates AFTER UPDATE ON {schema}.buffer_zone
REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION {schema}.tell_of_buffer_zone();
