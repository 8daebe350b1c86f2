"""Dead letters on PostgreSQL: a page costs the same whatever lies beside and behind it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headrace.stores.postgres.database import Database
from headrace.stores.postgres.queries import load_query
from tests.integration.postgres_setup import connection, database

FILL = """INSERT INTO "{schema}".finished_jobs (id, created_at, finished_at, attempt, priority, failures, crashes,
    max_attempts, at_most_once, cancel_requested, state, queue, task, args, error)
  SELECT gen_random_uuid(), now(), now() - n * interval '1 second', 1, 5, 1, 0, 1, false, false,
    CASE WHEN n % 2 = 0 THEN 'succeeded' ELSE 'failed' END, 'queue' || n % 7, 'work', '{{}}',
    '{{"kind": "E", "message": "m", "trace": ""}}'
  FROM generate_series(1, {count}) AS n"""


async def pages_read(opened: Database, connected: Any, **values: Any) -> int:
    """Return how many pages one page of dead letters reads, by the plan that a connection keeps."""
    query = load_query("dead_letters", opened.schema)
    asked = {
        "queue": None,
        "task": None,
        "within": None,
        "before_at": None,
        "before_id": None,
        "limit": 100,
        "now": None,
    }
    arguments = [{**asked, **values}[name] for name in query.parameters]
    shown = ", ".join("NULL" if value is None else f"'{value}'" for value in arguments)
    await connected.execute(f"SET plan_cache_mode = force_generic_plan; PREPARE page AS {query.numbered}")
    [[text]] = await connected.fetch(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE page ({shown})")
    await connected.execute("DEALLOCATE page")
    plan = json.loads(text)[0]["Plan"]
    return int(plan["Shared Hit Blocks"] + plan["Shared Read Blocks"])


@pytest.mark.parametrize("values", [{}, {"queue": "queue1"}, {"within": "1 hour"}, {"task": "none"}])
async def test_a_page_costs_the_same_in_a_big_history(values: dict[str, str]) -> None:
    """With twenty times the history, and plans made without statistics, a page reads little more."""
    async with database(fresh=True) as opened, connection() as connected:
        # Statistics that the server makes in the middle of the filling would say that many pages hold nothing.
        await connected.execute(f'ALTER TABLE "{opened.schema}".finished_jobs SET (autovacuum_enabled = off)')
        await connected.execute(FILL.format(schema=opened.schema, count=2_000))
        small = await pages_read(opened, connected, **values)
        await connected.execute(FILL.format(schema=opened.schema, count=40_000))
        big = await pages_read(opened, connected, **values)
    assert big < 2 * small + 300, f"{small} pages of a small history, {big} of a big one"
