"""Minimal loops over one connection: what the server and the driver can do without a framework.

Each drain takes batches of 100; the plain ones in two transactions, claim and finish. All use the pinned plans of the
shipped worker, so that a plan made for an empty table decides nothing.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from operator import itemgetter
from typing import Any
from uuid import uuid4

import asyncpg

from headrace.bench.enqueue import rate
from headrace.bench.order import Order
from headrace.bench.processor import cpu_seconds
from headrace.bench.statements import read
from headrace.engine.claimer import ONWARD_SECONDS
from headrace.model.ids import uuid7, uuid7s
from headrace.model.job import JobSpec

BATCH = 100
#: Steps of a turn where two loops take turns.
TURN = 10
FILL = 10_000
INSERT = 1_000
ARGS, RESULT = '{"args":[123],"kwargs":{}}', "null"
QUEUE = "default"

#: Takes up to a batch of jobs and finishes it; returns how many.
Step = Callable[[], Awaitable[int]]


@dataclass(frozen=True, slots=True)
class Loop:
    """A connection to a filled table, and the step that is repeated until nothing is left."""

    connection: Any
    step: Step


async def drain_plain(order: Order) -> dict[str, float]:
    """Drain a plain table: rows are marked and deleted, without fence and history."""
    return await _drain(order, await _plain_loop(order))


async def drain_delete(order: Order) -> dict[str, float]:
    """Drain a plain table under fences, without history."""
    return await _drain(order, await _fenced_loop(order))


async def drain_ours(order: Order) -> dict[str, float]:
    """Drain with the statements the worker ships with, on the shipped schema: fences, history, results."""
    return await _drain(order, await _shipped_loop(order))


async def statements(order: Order) -> dict[str, float]:
    """Drain as `drain_delete` and as `drain_ours` in turns of a few steps, so that both meet the same machine.

    A machine that changes its speed every second makes the ratio of two drains, one after the other, a matter of luck.
    """
    loops = {"delete": await _fenced_loop(order), "ours": await _shipped_loop(order)}
    seconds, done = dict.fromkeys(loops, 0.0), dict.fromkeys(loops, 0)
    names = list(loops)
    while min(done.values()) < order.jobs:
        for name in names:
            begun = time.perf_counter()
            done[name] += await _turn(loops[name])
            seconds[name] += time.perf_counter() - begun
        names.reverse()
    for loop in loops.values():
        await loop.connection.close()
    speed = {name: done[name] / seconds[name] for name in loops}
    return {"done": done["ours"], "share": speed["ours"] / speed["delete"], **speed}


async def _turn(loop: Loop) -> int:
    """Take the steps of one turn, fewer at the end, and return how many jobs they finished."""
    done = 0
    for _ in range(TURN):
        if not (count := await loop.step()):
            break
        done += count
    return done


async def _plain_loop(order: Order) -> Loop:
    connection = await _plain(order)
    claim, delete = read("claim_plain"), read("delete_plain")

    async def step() -> int:
        rows = await connection.fetch(claim, QUEUE, BATCH)
        return len(await connection.fetch(delete, [row[0] for row in rows])) if rows else 0

    return Loop(connection, step)


async def _fenced_loop(order: Order) -> Loop:
    connection, session = await _plain(order), uuid4()
    claim, delete = read("claim_fenced"), read("delete_fenced")

    async def step() -> int:
        rows = await connection.fetch(claim, QUEUE, BATCH, session)
        rows.sort(key=itemgetter(0))
        ids, attempts = [row["id"] for row in rows], [row["attempt"] for row in rows]
        return len(await connection.fetch(delete, ids, attempts, session)) if rows else 0

    return Loop(connection, step)


async def _shipped_loop(order: Order) -> Loop:
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
    claim: dict[str, Any] = {"session": session, "queue": QUEUE, "limit": BATCH, "after_at": None, "after_id": None}
    held: list[Any] = []
    looked_at = 0.0

    async def step() -> int:
        """Do as the worker does: end what was claimed, and in the same statement claim what comes behind it."""
        nonlocal looked_at
        rows = held or await run("claim_jobs", **claim)
        if not rows:
            return 0
        claim["after_at"], claim["after_id"] = max(map(_place, rows))
        if (now := time.perf_counter()) - looked_at >= ONWARD_SECONDS:
            looked_at, claim["after_at"], claim["after_id"] = now, None, None
        *held[:], last = await run("finish_jobs", **claim, **_endings(sorted(rows, key=itemgetter("id"))))
        return len(last["ended"])

    return Loop(connection, step)


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
    from headrace.stores.postgres.intake import spec_values

    spec = JobSpec("noop", QUEUE, timeout=timedelta(minutes=5))
    await run(
        "insert_jobs", ids=uuid7s(count), args=[ARGS] * count, run_ats=[None] * count, run_ids=[],
        nodes=[], **spec_values(spec),
    )  # fmt: skip


_place = itemgetter("sort_at", "id")


def _endings(rows: list[Any]) -> dict[str, list[Any]]:
    """Return the parameters by which all these jobs end well."""
    return {
        "ids": [row["id"] for row in rows],
        "attempts": [row["attempt"] for row in rows],
        "results": [RESULT] * len(rows),
        "endings": [None] * len(rows),
    }


async def _plain(order: Order) -> Any:
    """Return a connection to a plain table with `order.jobs` waiting jobs."""
    connection = await _connect(order.dsn)
    await connection.execute(read("create_plain"))
    for start in range(0, order.jobs, FILL):
        await _insert(connection, min(FILL, order.jobs - start))
    return connection


async def _insert(connection: Any, count: int) -> None:
    ids = uuid7s(count)
    await connection.execute(read("insert_plain"), ids, [ARGS] * count)


async def _connect(dsn: str) -> Any:
    from headrace.stores.postgres.database import PINNED_PLANS

    return await asyncpg.connect(dsn, server_settings={"jit": "off", **PINNED_PLANS})


async def _drain(order: Order, loop: Loop) -> dict[str, float]:
    """Repeat the step until it finds nothing, and return the speed."""
    cpu, server, begun = time.process_time(), cpu_seconds(order.server_pid), time.perf_counter()
    done = 0
    while count := await loop.step():
        done += count
    seconds = time.perf_counter() - begun
    figures = {"done": done, "seconds": seconds, "per_second": done / seconds}
    figures["client_us"] = (time.process_time() - cpu) / done * 1e6
    server_after = cpu_seconds(order.server_pid)
    if server is not None and server_after is not None:
        figures["server_us"] = (server_after - server) / done * 1e6
    await loop.connection.close()
    return figures
