"""Minimal loops over one connection: what the server and the driver can do without a framework.

Each drain takes batches of 100 in two transactions, claim and finish. All use the pinned plans of the shipped worker,
so that a plan made for an empty table decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import Any
from uuid import UUID, uuid4

import asyncpg

from headrace.bench.enqueue import rate
from headrace.bench.order import Order
from headrace.bench.processor import cpu_seconds
from headrace.bench.statements import read
from headrace.model.ids import uuid7

BATCH = 100
FILL = 10_000
INSERT = 1_000
ARGS, RESULT = '{"args":[123],"kwargs":{}}', "null"
QUEUE = "default"

#: Takes up to a batch of jobs and finishes it; returns how many.
Step = Callable[[], Awaitable[int]]


async def drain_plain(order: Order) -> dict[str, float]:
    """Drain a plain table: rows are marked and deleted, without fence and history."""
    connection = await _plain(order)
    claim, delete = read("claim_plain"), read("delete_plain")

    async def step() -> int:
        rows = await connection.fetch(claim, QUEUE, BATCH)
        return len(await connection.fetch(delete, [row[0] for row in rows])) if rows else 0

    return await _drain(order, connection, step)


async def drain_delete(order: Order) -> dict[str, float]:
    """Drain a plain table under fences, without history."""
    connection, session = await _plain(order), uuid4()
    claim, delete = read("claim_fenced"), read("delete_fenced")

    async def step() -> int:
        rows = await connection.fetch(claim, QUEUE, BATCH, session)
        rows.sort(key=itemgetter(0))
        ids, attempts = [row["id"] for row in rows], [row["attempt"] for row in rows]
        return len(await connection.fetch(delete, ids, attempts, session)) if rows else 0

    return await _drain(order, connection, step)


async def drain_ours(order: Order) -> dict[str, float]:
    """Drain with the statements the worker ships with, on the shipped schema: fences, history, results."""
    from headrace.stores.postgres.migrate import apply

    await apply(order.dsn)
    connection, session = await _connect(order.dsn), uuid7()
    run = partial(_run_shipped, connection)
    await run(
        "register_session", id=session, start_time=0, lease=timedelta(minutes=10), pid=0, host="raw", hostname="raw",
        queues="{}",
    )  # fmt: skip
    for start in range(0, order.jobs, FILL):
        await _fill_shipped(run, min(FILL, order.jobs - start))

    return await _drain(order, connection, _shipped_step(run, session))


def _shipped_step(run: Callable[..., Awaitable[Any]], session: UUID) -> Step:
    """Return the round of the shipped worker: claim, then finish; in one statement where the finish claims too."""
    from headrace.stores.postgres.queries import load_query

    exchanges = "limit" in load_query("finish_jobs", "headrace").parameters
    claim = {"session": session, "queue": QUEUE, "limit": BATCH}
    held: list[Any] = []

    async def step() -> int:
        rows = sorted(held or await run("claim_jobs", **claim), key=itemgetter("id"))
        if not rows:
            return 0
        answer = await run("finish_jobs", **claim, **_endings(rows))
        if not exchanges:
            return len(answer)
        *held[:], last = answer
        return len(last["ended"])

    return step


async def insert(order: Order) -> dict[str, float]:
    """Insert into a plain table: by arrays of 1,000 rows, and one awaited row after another."""
    connection = await _plain(replace(order, jobs=0))
    await _insert(connection, 100)
    statements, begun = max(order.jobs // INSERT, 1), time.perf_counter()
    for _ in range(statements):
        await _insert(connection, INSERT)
    many = statements * INSERT / (time.perf_counter() - begun)
    statement = await connection.prepare(read("insert_plain_one"))
    one = await rate(lambda _: statement.fetch(uuid7(), ARGS), seconds=order.seconds, callers=1)
    await connection.close()
    return {"many": many, "one": one}


async def _run_shipped(connection: Any, name: str, **values: Any) -> list[Any]:
    """Run a shipped statement by name, as the store does, without its pool and its retries."""
    from headrace.stores.postgres.queries import load_query

    query = load_query(name, "headrace")
    rows: list[Any] = await connection.fetch(query.numbered, *query.arguments({"now": None, **values}))
    return rows


async def _fill_shipped(run: Callable[..., Awaitable[Any]], count: int) -> None:
    await run(
        "insert_jobs", ids=[uuid7() for _ in range(count)], args=[ARGS] * count, run_ats=[None] * count, queue=QUEUE,
        task="noop", priority=4, max_attempts=4, timeout=timedelta(minutes=5), at_most_once=False, limit_key=None,
        head_start=timedelta(),
    )  # fmt: skip


def _endings(rows: list[Any]) -> dict[str, list[Any]]:
    """Return the parameters by which all these jobs end well."""
    count = len(rows)
    return {
        "ids": [row["id"] for row in rows],
        "attempts": [row["attempt"] for row in rows],
        "states": ["succeeded"] * count,
        "results": [RESULT] * count,
        "errors": [None] * count,
        "usages": [None] * count,
        "failures": [0] * count,
        "crashes": [0] * count,
        "endings": [None] * count,
    }


async def _plain(order: Order) -> Any:
    """Return a connection to a plain table with `order.jobs` waiting jobs."""
    connection = await _connect(order.dsn)
    await connection.execute(read("create_plain"))
    for start in range(0, order.jobs, FILL):
        await _insert(connection, min(FILL, order.jobs - start))
    return connection


async def _insert(connection: Any, count: int) -> None:
    ids: list[UUID] = [uuid7() for _ in range(count)]
    await connection.execute(read("insert_plain"), ids, [ARGS] * count)


async def _connect(dsn: str) -> Any:
    from headrace.stores.postgres.database import PINNED_PLANS

    return await asyncpg.connect(dsn, server_settings={"jit": "off", **PINNED_PLANS})


async def _drain(order: Order, connection: Any, step: Step) -> dict[str, float]:
    """Repeat a step until it finds nothing, and return the speed."""
    cpu, server, begun = time.process_time(), cpu_seconds(order.server_pid), time.perf_counter()
    done = 0
    while count := await step():
        done += count
    seconds = time.perf_counter() - begun
    figures = {"done": done, "seconds": seconds, "per_second": done / seconds}
    figures["client_us"] = (time.process_time() - cpu) / done * 1e6
    server_after = cpu_seconds(order.server_pid)
    if server is not None and server_after is not None:
        figures["server_us"] = (server_after - server) / done * 1e6
    await connection.close()
    return figures
