"""Plans: the hot statements walk their index and the primary key, whatever the statistics say.

A statement keeps the plan it got on an empty table. That is the dangerous case, so every plan here is made on empty
tables without statistics, and checked again with 20,000 rows.
"""

from __future__ import annotations

import re
from typing import Any

import pytest

from headrace.stores.postgres.database import Database
from headrace.stores.postgres.queries import load_query
from tests.integration.postgres_setup import database

LOAD = """INSERT INTO "{schema}".jobs (id, state, session, started_at, sort_at, created_at, queue, task, priority,
    max_attempts, args, batch_id, run_at)
  SELECT gen_random_uuid(), CASE WHEN n % 50 = 0 THEN 'running' WHEN n % 50 = 1 THEN 'scheduled' ELSE 'ready' END,
    CASE WHEN n % 50 = 0 THEN '00000000-0000-0000-0000-000000000001'::uuid END, CASE WHEN n % 50 = 0 THEN now() END,
    now() + n * interval '1 microsecond', now(), 'default', 'work', 5, 4, '{{}}',
    CASE WHEN n % 2 = 0 THEN md5((n % 500)::text)::uuid END, now()
  FROM generate_series(1, 20000) AS n"""

#: What each statement may use to reach the hot table and the history; anything else is a plan gone astray.
HOT = {
    "claim_jobs": {"jobs_claim", "jobs_pkey", "batches_live", "sessions_pkey", "queues_pkey"},
    "finish_jobs": {"jobs_claim", "jobs_pkey", "batches_live", "sessions_pkey", "queues_pkey"},
    "finish_logged": {"jobs_claim", "jobs_pkey", "batches_live", "sessions_pkey", "queues_pkey"},
    "return_jobs": {"jobs_pkey", "attempt_logs_pkey", "batches_paused"},
    "stage_jobs": {"jobs_due", "jobs_parked_due", "jobs_pkey", "batches_paused"},
    "close_batches": {
        "jobs_batch",
        "jobs_retry",
        "finished_jobs_items",
        "finished_jobs_unsuccessful",
        "finished_jobs_retry",
        "batches_pkey",
        "batches_live",
    },
}


#: What ANALYZE notes when all rows were deleted and their pages are still there.
EMPTIED = """UPDATE pg_class SET relpages = 10, reltuples = 0
  WHERE relnamespace = to_regnamespace($1) AND relkind IN ('r', 'i')"""
#: How often each index was walked and each table scanned; the server forgets it at times, but in no transaction.
SCANS = """SELECT c.relname, pg_stat_get_xact_numscans(c.oid) AS scans FROM pg_class AS c
  WHERE c.relnamespace = to_regnamespace($1) AND c.relkind IN ('r', 'i')"""


async def plan(opened: Database, name: str, connection: Any) -> str:
    """Return the generic plan of a statement, as a worker's connection would keep it."""
    query = load_query(name, opened.schema)
    await connection.execute("SET plan_cache_mode = force_generic_plan")
    await connection.execute(f"PREPARE {name} AS {query.numbered}")
    nothing = f"({', '.join('NULL' for _ in query.parameters)})" if query.parameters else ""
    rows = await connection.fetch(f"EXPLAIN (COSTS OFF) EXECUTE {name} {nothing}")
    await connection.execute(f"DEALLOCATE {name}")
    return "\n".join(row[0] for row in rows)


def used(text: str) -> set[str]:
    """Return the indexes a plan uses."""
    return set(re.findall(r"using (\w+)", text)) | set(re.findall(r"Bitmap Index Scan on (\w+)", text))


async def looked_into(connection: Any, schema: str, name: str, values: dict[str, Any]) -> set[str]:
    """Return the indexes that a statement walks and the tables it scans, also within functions; it is taken back."""
    query = load_query(name, schema)
    transaction = connection.transaction()
    await transaction.start()
    before = dict(await connection.fetch(SCANS, schema))
    await connection.fetch(query.numbered, *query.arguments(values))
    after = dict(await connection.fetch(SCANS, schema))
    await transaction.rollback()
    return {name for name, scans in after.items() if scans > before[name]}


@pytest.mark.parametrize("name", sorted(HOT))
async def test_a_hot_statement_keeps_to_its_indexes(name: str) -> None:
    """Claims walk the claim indexes, endings the primary key, staging what is due: no scan or other index."""
    async with database(fresh=True, pinned=True) as opened:
        connection = await opened.connect()
        for scene in ("empty", "analysed while empty", "analysed when emptied", "loaded"):
            if scene == "loaded":
                await connection.execute(LOAD.format(schema=opened.schema))
            if scene == "analysed when emptied":
                await connection.execute(EMPTIED, opened.schema)
            elif scene != "empty":
                await connection.execute(f'ANALYZE "{opened.schema}".jobs, "{opened.schema}".finished_jobs')
            text = await plan(opened, name, connection)
            assert used(text) <= HOT[name], text
            assert used(text) & {"jobs_pkey", "jobs_batch"}, text
            assert not re.search(r"Seq Scan on (jobs|finished_jobs)|Hash Join|Merge Join|Bitmap", text), text
            ending, _, _ = text.partition("CTE claimed")
            assert name not in ("finish_jobs", "finish_logged") or used(ending) == {"jobs_pkey"}, text
        await connection.close()


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("renew_session", "jobs_to_cancel"),
        ("batch_progress", "jobs_batch"),
        ("batch_progress", "finished_jobs_items"),
        ("batch_states", "jobs_batch"),
        ("batch_states", "finished_jobs_items"),
        ("batch_states", "finished_jobs_unsuccessful"),
        ("batch_dead_letters", "finished_jobs_unsuccessful"),
        ("list_item_jobs", "jobs_batch"),
        ("list_item_jobs", "finished_jobs_items"),
        ("read_items", "finished_jobs_items"),
        ("save_step", "jobs_pkey"),
        ("cancel_waiting_job", "jobs_pkey"),
        ("settle_cancelled", "jobs_batch"),
        ("hold_jobs", "jobs_batch"),
        ("let_go_jobs", "jobs_parked"),
        ("prune_succeeded", "finished_jobs_succeeded"),
        ("prune_failed", "finished_jobs_failed"),
        ("lock_dead_letters", "finished_jobs_failed"),
    ],
)
async def test_a_statement_of_the_loops_uses_its_index(name: str, index: str) -> None:
    """With rows and statistics, each statement that runs all the time finds its few rows by the index made for it."""
    async with database(fresh=True) as opened:
        connection = await opened.connect()
        await connection.execute(LOAD.format(schema=opened.schema))
        await connection.execute(FINISHED.format(schema=opened.schema))
        await connection.execute(f'ANALYZE "{opened.schema}".jobs, "{opened.schema}".finished_jobs')
        text = await plan(opened, name, connection)
        await connection.close()
    assert index in used(text), text


FINISHED = """INSERT INTO "{schema}".finished_jobs (id, batch_id, ordinal, created_at, finished_at, attempt, priority,
    failures, crashes, max_attempts, at_most_once, cancel_requested, state, queue, task, args)
  SELECT gen_random_uuid(), md5((n % 500)::text)::uuid, n, now(), now() + n * interval '1 second', 1, 5, 0, 0, 4, false,
    false, CASE WHEN n % 20 = 0 THEN 'failed' ELSE 'succeeded' END, 'default', 'work', '{{}}'
  FROM generate_series(1, 20000) AS n"""


#: What runs again and again, with the only way it may reach the two big tables.
PERIODIC = {
    "find_ended": set(),
    "mark_swept": set(),
    "rescue_jobs": {"Tid Range Scan on jobs", "jobs_pkey"},
    "fail_overdue_jobs": {"Tid Range Scan on jobs", "jobs_pkey"},
    "find_unclosed": {"jobs_batch", "finished_jobs_unsuccessful", "finished_jobs_retry", "jobs_retry"},
    "find_paused": {"jobs_parked"},
    "prune_succeeded": {"finished_jobs_succeeded", "finished_jobs_pkey"},
    "prune_failed": {"finished_jobs_failed", "finished_jobs_pkey"},
    "list_failed_kinds": {"finished_jobs_failed"},
    "lock_dead_letters": {"finished_jobs_failed", "finished_jobs_retry", "jobs_retry"},
    "waiting_jobs": {"jobs_claim", "jobs_waiting", "jobs_scheduled"},
    "queue_states": set(),
    "queue_stats": {"Sample Scan on jobs", "Sample Scan on finished_jobs"},
    "sound_live": {"jobs_claim", "jobs_due"},
    "sound_past": {"finished_jobs_failed", "finished_jobs_succeeded", "finished_jobs_pkey"},
    "list_jobs": {"jobs_pkey", "finished_jobs_pkey", "jobs_claim", "jobs_waiting", "finished_jobs_failed"},
}


STEPS = """INSERT INTO "{schema}".steps (job_id, name, value, created_at)
  SELECT gen_random_uuid(), 'headrace:begun', '{{}}', now()
  FROM generate_series(1, 20000)"""


async def test_a_rescue_finds_steps_by_their_key() -> None:
    """What a farm had begun is one step of each lost job, found by its key, also by a plan older than any step."""
    async with database(fresh=True) as opened:
        connection = await opened.connect()
        plans = [await plan(opened, "rescue_jobs", connection)]
        await connection.execute(STEPS.format(schema=opened.schema))
        await connection.execute(f'ANALYZE "{opened.schema}".steps')
        plans.append(await plan(opened, "rescue_jobs", connection))
        await connection.close()
    for text in plans:
        assert "Scan using steps_pkey on steps" in text, text
        assert "Scan on steps" not in text, text


async def test_nothing_that_runs_again_and_again_scans_the_big_tables() -> None:
    """Sweeps read ranges of pages, read models shares of them, all else goes by an index: no scan of a big table."""
    async with database(fresh=True) as opened:
        connection = await opened.connect()
        await connection.execute(LOAD.format(schema=opened.schema))
        await connection.execute(FINISHED.format(schema=opened.schema))
        await connection.execute(f'ANALYZE "{opened.schema}".jobs, "{opened.schema}".finished_jobs')
        plans = {name: await plan(opened, name, connection) for name in PERIODIC}
        await connection.close()
    for name, allowed in PERIODIC.items():
        text = plans[name]
        reached = {index for index in used(text) if index.startswith(("jobs_", "finished_jobs_"))}
        reached |= set(re.findall(r"(?:Tid Range|Sample|Seq|Parallel Seq) Scan on (?:jobs|finished_jobs)\b", text))
        assert reached <= allowed, f"{name}: {reached - allowed}\n{text}"
