"""Writers of the same rows lock them in one order: whoever names them in another order waits, and nobody deadlocks.

The store tries again after a deadlock, so that callers never see one; these tests force the crossing and then ask the
server's log. A row in the middle is held, two calls with opposite orders run up to it, and the row is let go.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from headrace.model.batch import NewBatch
from headrace.model.breaker import BreakerRule
from headrace.model.job import Claim, Completion, JobSpec, JobState, NewJob
from headrace.model.limits import Declared, Gate, Rate
from tests.backends.server import shared_server
from tests.integration.postgres_setup import ARGS, SPEC, claim, connection, done, enqueue, register, schema_stores
from tests.waiting import wait_until

COUNT = 9
Call = Callable[[int], Coroutine[Any, Any, object]]


def deadlocks() -> int:
    """Count the deadlocks that the server has broken so far."""
    return (shared_server().root / "log").read_text().count("deadlock detected")


async def cross(schema: str, hold: str, value: object, call: Call) -> None:
    """Hold what `hold` locks, let two calls in opposite orders wait, let go, and see that nobody deadlocked."""
    before = deadlocks()
    async with connection() as other:
        transaction = other.transaction()
        await transaction.start()
        await other.execute(hold.format(schema=schema), value)
        calls = [asyncio.create_task(call(direction)) for direction in (1, -1)]
        await both_wait(schema, calls)
        await transaction.rollback()
    await asyncio.wait_for(asyncio.gather(*calls), 30)
    assert deadlocks() == before


async def both_wait(schema: str, calls: list[asyncio.Task[object]]) -> None:
    """Wait until both calls wait for a lock."""
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND position($1 in query) > 0"
    async with connection() as opened:

        async def waiting() -> bool:
            assert not any(call.done() for call in calls)
            return bool(await opened.fetchval(query, schema) == len(calls))

        await wait_until(waiting, message="both calls to wait for a lock")


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.SCHEDULED])
async def test_endings_lock_jobs_in_one_order(state: JobState) -> None:
    """Completions of the same jobs, final or not, take their rows in the order of the ids."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        ids = sorted(await enqueue(stores, COUNT))
        jobs = sorted(await claim(stores, session), key=lambda job: job.id)
        endings = [Completion(job.id, job.attempt, state) for job in jobs]

        async def end(direction: int) -> object:
            return await stores.jobs.complete_jobs(session, endings[::direction])

        await cross(schema, 'SELECT FROM "{schema}".jobs WHERE id = $1 FOR UPDATE', ids[COUNT // 2], end)


async def test_closers_lock_batches_in_one_order() -> None:
    """Closers of the same batches take their rows in the order of the ids."""
    async with schema_stores() as (schema, stores):
        session = await register(stores)
        ids = sorted([await stores.batches.create_batch(NewBatch(SPEC), [ARGS]) for _ in range(COUNT)])
        await stores.jobs.complete_jobs(session, done(await claim(stores, session)))

        async def close(direction: int) -> object:
            return await stores.batches.close_batches(ids[::direction])

        await cross(schema, 'SELECT FROM "{schema}".batches WHERE id = $1 FOR UPDATE', ids[COUNT // 2], close)


async def test_submitters_lock_keys_in_one_order() -> None:
    """Submitters of the same keys take them in the order of the keys."""
    async with schema_stores() as (schema, stores):

        async def submit(direction: int) -> object:
            jobs = [NewJob(SPEC, ARGS, key=f"k{number}", body_hash="1") for number in range(COUNT)]
            return await stores.jobs.insert_jobs(jobs[::direction])

        held = (
            'INSERT INTO "{schema}".idempotency_keys (scope, key, id, body_hash) '
            "VALUES ('job:work', $1, gen_random_uuid(), '1')"
        )
        await cross(schema, held, f"k{COUNT // 2}", submit)


@pytest.mark.parametrize("kind", ["limits", "rates", "breakers"])
async def test_admissions_lock_what_lanes_need_in_one_order(kind: str) -> None:
    """Admissions of two queues whose jobs came in opposite orders take caps, buckets and breakers by their names."""
    async with schema_stores() as (schema, stores):
        assert stores.admission is not None
        admission = stores.admission
        names = [f"k{number}" for number in range(COUNT)]
        await admission.declare_limits(
            Declared(dict.fromkeys(names, 1), dict.fromkeys(names, Rate(1, 1)), dict.fromkeys(names, BreakerRule()))
        )
        sessions = {direction: await register(stores) for direction in (1, -1)}
        for direction in sessions:
            for name in names[::direction]:
                gate = Gate(f"{direction}{names.index(name) * direction + 50}", caps=(name,), limits=((name, 1.0),),
                            breakers=(name,))  # fmt: skip
                await enqueue(stores, 1, JobSpec("gated", f"q{direction}", gate=gate))

        async def take(direction: int) -> object:
            return await admission.admit_jobs(Claim(sessions[direction], f"q{direction}", 100))

        column = "name" if kind == "rates" else "key"
        held = f'SELECT FROM "{{schema}}".{kind} WHERE {column} = $1 FOR UPDATE'
        await cross(schema, held, names[COUNT // 2], take)


async def test_takers_of_units_lock_buckets_in_one_order() -> None:
    """Callers that take from the same buckets take their rows by name."""
    async with schema_stores() as (schema, stores):
        assert stores.limiter is not None
        limiter = stores.limiter
        names = [f"k{number}" for number in range(COUNT)]
        await limiter.declare(dict.fromkeys(names, Rate(1, 1)))

        async def take(direction: int) -> object:
            return await limiter.take(dict.fromkeys(names[::direction], 1.0), some=True)

        await cross(schema, 'SELECT FROM "{schema}".rates WHERE name = $1 FOR UPDATE', names[COUNT // 2], take)
