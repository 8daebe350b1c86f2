"""Plans of what runs need: every statement finds its few rows by an index, however much is parked, run or finished."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.stores.postgres.database import Database
from headrace.stores.postgres.queries import load_query
from tests.integration.postgres_setup import database
from tests.integration.test_postgres_plans import EMPTIED, looked_into, plan, used

PARKED = 100_000

#: Parked jobs that wait for signals alone, ten of them due, and jobs of 100 runs.
JOBS = """INSERT INTO "{schema}".jobs (id, state, sort_at, created_at, queue, task, priority, max_attempts, args,
    run_id, node, parked_on, run_at)
  SELECT gen_random_uuid(), CASE WHEN n <= {parked} THEN 'parked' ELSE 'ready' END, now(), now(), 'default', 'work', 5,
    4, '{{}}', md5((n % 100)::text)::uuid, 'n' || n, CASE WHEN n <= {parked} THEN 'k' || n END,
    CASE WHEN n <= 10 THEN now() - interval '1 second' END
  FROM generate_series(1, {parked} + 5000) AS n"""
FINISHED = """INSERT INTO "{schema}".finished_jobs (id, created_at, finished_at, attempt, priority, failures, crashes,
    max_attempts, at_most_once, cancel_requested, state, queue, task, args, run_id, node, settled)
  SELECT gen_random_uuid(), now(), now() + n * interval '1 second', 1, 5, 0, 0, 4, false, false,
    CASE WHEN n % 20 = 0 THEN 'failed' ELSE 'succeeded' END, 'default', 'work', '{{}}',
    CASE WHEN n % 2 = 0 THEN md5((n % 100)::text)::uuid END, 'n', CASE WHEN n % 2 = 0 AND n > 20 THEN true END
  FROM generate_series(1, 20000) AS n"""
RUNS = """INSERT INTO "{schema}".runs (id, created_at, finished_at, version, state, level, workflow, snapshot, reason,
    input, context)
  SELECT CASE WHEN n < 100 THEN md5(n::text)::uuid ELSE gen_random_uuid() END, now(),
    CASE WHEN n >= 100 THEN now() + n * interval '1 second' END, 1,
    CASE WHEN n < 5 THEN 'cancelling' WHEN n < 100 THEN 'running' ELSE 'succeeded' END, 'node_level', 'w' || n % 50,
    'h' || n % 500, '', '1', '{{}}'
  FROM generate_series(0, 10000) AS n"""
NODES = """INSERT INTO "{schema}".run_nodes (run_id, finished_at, attempts, reused, path, state, port, artifact)
  SELECT md5((n % 100)::text)::uuid, now(), 1, false, 'n' || n, 'success', 'main', ''
  FROM generate_series(1, 20000) AS n"""
JOINS = """INSERT INTO "{schema}".run_joins (run_id, path, total, remaining, fired, need, decided)
  SELECT md5((n % 100)::text)::uuid, 'j' || n, 2, 1, 1, 2, 0 FROM generate_series(1, 20000) AS n"""
SIGNALS = """INSERT INTO "{schema}".signals (key, payload, sent_at, created_at)
  SELECT 'k' || n, CASE WHEN n > {parked} THEN '1'::json END, CASE WHEN n > {parked} THEN now() END, now()
  FROM generate_series(1, {parked} + 5000) AS n"""
KEYS = """INSERT INTO "{schema}".idempotency_keys (scope, key, id, body_hash)
  SELECT 'run:w' || n % 50, n::text, gen_random_uuid(), 'h' FROM generate_series(1, 20000) AS n"""
TABLES = ("jobs", "finished_jobs", "runs", "run_nodes", "run_joins", "signals", "idempotency_keys")


@asynccontextmanager
async def loaded() -> AsyncIterator[tuple[Database, Any]]:
    """Open a database full of runs, and a connection to it."""
    async with database(fresh=True) as opened:
        connection = await opened.connect()
        for text in (JOBS, FINISHED, RUNS, NODES, JOINS, SIGNALS, KEYS):
            await connection.execute(text.format(schema=opened.schema, parked=PARKED))
        await connection.execute("ANALYZE " + ", ".join(f'"{opened.schema}".{table}' for table in TABLES))
        yield opened, connection
        await connection.close()


async def test_the_end_of_a_node_keeps_to_keys() -> None:
    """Whatever the statistics say, it reaches jobs, runs, endings and sums by their keys, and claims by theirs."""
    allowed = {
        "jobs_pkey", "jobs_claim", "runs_pkey", "sessions_pkey", "queues_pkey", "batches_live",
    }  # fmt: skip
    async with database(fresh=True, pinned=True) as opened:
        connection = await opened.connect()
        for scene in ("empty", "analysed while empty", "analysed when emptied", "loaded"):
            if scene == "loaded":
                for text in (JOBS, RUNS, NODES, JOINS):
                    await connection.execute(text.format(schema=opened.schema, parked=5_000))
            if scene == "analysed when emptied":
                await connection.execute(EMPTIED, opened.schema)
            elif scene != "empty":
                await connection.execute(f'ANALYZE "{opened.schema}".jobs, "{opened.schema}".runs')
            text = await plan(opened, "finish_nodes", connection)
            assert used(text) <= allowed, text
            assert not re.search(r"Seq Scan on (jobs|finished_jobs|runs|run_\w+)|Hash Join|Merge Join|Bitmap", text), (
                text
            )
            ending, _, _ = text.partition("CTE claimed")
            assert used(ending) <= {"jobs_pkey", "runs_pkey", "queues_pkey"}, text
        await connection.close()


#: What each statement may use to reach the tables that grow.
WAYS = {
    "park_jobs": {"jobs_pkey"},
    "unsettled_jobs": {"finished_jobs_unsettled"},
    "settle_jobs": {"finished_jobs_pkey"},
    "cancel_run_jobs": {"runs_state", "jobs_run", "jobs_pkey"},
    "end_cancelled_runs": {"runs_state", "jobs_run"},
    "live_nodes": {"jobs_run"},
    "read_nodes": {"run_nodes_pkey"},
    "find_nodes": {"run_nodes_pkey"},
    "save_nodes": {"jobs_pkey"},
    "get_run": {"runs_pkey"},
    "final_runs": {"runs_pkey"},
    "list_runs": {"runs_pkey", "runs_workflow", "runs_state"},
    "find_run": {"runs_pkey", "idempotency_keys_pkey"},
    "prune_runs": {"runs_finished", "runs_pkey", "run_nodes_pkey", "run_joins_pkey", "idempotency_keys_pkey"},
    "prune_signals": {"signals_sent", "signals_awaited", "signals_pkey", "jobs_parked"},
    "prune_snapshots": {"runs_snapshot"},
}


#: How many pages of 8 KiB a statement may read of all those.
PAGES: dict[str, tuple[dict[str, Any], int]] = {
    "stage_jobs": ({"limit": 1_000, "now": None}, 500),
    "unsettled_jobs": ({"limit": 1_000}, 100),
    "live_nodes": ({"run_id": UUID("cfcd2084-95d5-65ef-66e7-dff9f98764da")}, 3_000),
    "send_signal": ({"key": "k77777", "payload": "1", "now": None, "head_starts": [timedelta()] * 10}, 100),
}


async def test_with_much_parked_each_statement_of_runs_finds_its_rows_by_an_index() -> None:
    """A hundred thousand jobs that wait for signals, thousands of runs: nothing scans a table that grows.

    What loops ask again and again reads the pages of what it is for, and hardly more.
    """
    async with loaded() as (opened, connection):
        plans = {name: await plan(opened, name, connection) for name in WAYS}
        woke = await looked_into(connection, opened.schema, "send_signal", PAGES["send_signal"][0])
        read = {name: await pages(opened, connection, name, values) for name, (values, _) in PAGES.items()}
    for name, allowed in WAYS.items():
        reached = {index for index in used(plans[name]) if index.startswith(tuple(f"{table}_" for table in TABLES))}
        assert reached <= allowed, plans[name]
        assert not re.search(rf"Seq Scan on ({'|'.join(TABLES)})\b", plans[name]), plans[name]
    assert woke == {"signals_pkey", "jobs_parked", "jobs_pkey"}
    assert {name: count for name, count in read.items() if count > PAGES[name][1]} == {}


async def pages(opened: Database, connection: Any, name: str, values: dict[str, Any]) -> int:
    """Return how many pages a statement reads; what it changes is taken back."""
    query = load_query(name, opened.schema)
    transaction = connection.transaction()
    await transaction.start()
    [told] = await connection.fetch(
        f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {query.numbered}", *query.arguments(values)
    )
    await transaction.rollback()
    top = json.loads(told[0])[0]["Plan"]
    return int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])
