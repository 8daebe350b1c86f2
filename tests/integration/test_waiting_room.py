"""A waiting room full of parked jobs costs nothing: what loops ask all the time reads as much as with hardly any.

Measured is what the server does, not how long it takes: rows and pages on PostgreSQL, commands on Redis.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from uuid import UUID

import pytest

from headrace.model.job import Claim, Completion, JobState, Park
from headrace.ports.stores import Stores
from tests.backends import postgres, redis, valkey
from tests.conformance.runs import new_run
from tests.conformance.scenario import DAY
from tests.integration.postgres_setup import connection, register
from tests.waiting import wait_until

#: Nodes of one run, and so jobs of one slice.
SLICE = 2_000
ROUNDS = 20
FEW = 100


@dataclass(frozen=True, slots=True)
class Room:
    """A place for one store."""

    open: Callable[[], AbstractAsyncContextManager[Stores]]
    #: Parks jobs up to a number, where `FEW` are parked.
    fill: Callable[[Stores, UUID, int], Awaitable[None]]
    #: What the server has done so far by its own account, by kind of work; read while no store is open.
    done: Callable[[], Awaitable[Counter[str]]]
    #: Most of each kind of work in one round of polls, and in one wake-up with the opening of the stores.
    polls: dict[str, int]
    wakes: dict[str, int]


async def park(stores: Stores, session: UUID, first: int, last: int) -> None:
    """Park jobs of runs that wait for signals "k<number>", every other with a time limit too."""
    for start in range(first, last, SLICE):
        numbers = range(start, min(start + SLICE, last))
        await stores.runs.start_run(new_run(*(f"n{number}" for number in numbers)))
        jobs = await stores.jobs.claim_jobs(Claim(session, "default", len(numbers)))
        parks = [Park(f"k{number}", DAY if number % 2 else None) for number in numbers]
        done = [
            Completion(job.id, job.attempt, JobState.PARKED, park=park) for job, park in zip(jobs, parks, strict=True)
        ]
        assert len(await stores.jobs.complete_jobs(session, done)) == len(numbers)


async def poll(stores: Stores, session: UUID) -> None:
    """Ask what the loops of a worker ask all the time, of which nothing comes."""
    assert await stores.jobs.stage_jobs(limit=1_000) == frozenset()
    assert await stores.jobs.claim_jobs(Claim(session, "default", 10)) == []
    assert await stores.runs.unsettled_jobs(limit=200) == []
    assert await stores.runs.sweep_runs(limit=1_000) == ([], False)


async def cost_of(room: Room, act: Callable[[Stores], Awaitable[None]]) -> Counter[str]:
    """Return what an act costs the server on stores of its own."""
    before = await room.done()
    async with room.open() as stores:
        await act(stores)
    return await room.done() - before


async def cost_of_polls(room: Room, session: UUID) -> Counter[str]:
    """Return what one round of polls costs the server, without the opening of the stores."""

    async def rounds(stores: Stores) -> None:
        for _ in range(ROUNDS):
            await poll(stores, session)

    async def one(stores: Stores) -> None:
        await poll(stores, session)

    once, more = await cost_of(room, one), await cost_of(room, rounds)
    return Counter({name: round((more[name] - once[name]) / (ROUNDS - 1)) for name in more})


async def parked(stores: Stores) -> int:
    """Return how many jobs are parked, counted one by one."""
    return (await stores.inspect.live_jobs("default")).get(JobState.PARKED, 0)


# PostgreSQL

#: Rows that were read of tables and entries of indexes, and pages of both.
DONE = """SELECT
  (SELECT sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) FROM pg_stat_user_tables WHERE schemaname = $1)
  + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = $1) AS rows,
  (SELECT sum(heap_blks_read + heap_blks_hit + coalesce(idx_blks_read + idx_blks_hit, 0))
    FROM pg_statio_user_tables WHERE schemaname = $1) AS pages"""
#: Parked jobs, and the keys they wait for, once more under other names.
COPY_JOBS = """INSERT INTO "{schema}".jobs SELECT (jsonb_populate_record(old,
    jsonb_build_object('id', gen_random_uuid(), 'node', 'n' || n, 'parked_on', 'k' || n))).*
  FROM generate_series({first}, {last} - 1) AS n JOIN "{schema}".jobs AS old ON old.parked_on = 'k' || n % 2"""
COPY_KEYS = """INSERT INTO "{schema}".signals SELECT (jsonb_populate_record(old, jsonb_build_object('key', 'k' || n))).*
  FROM generate_series({first}, {last} - 1) AS n JOIN "{schema}".signals AS old ON old.key = 'k' || n % 2"""


@pytest.fixture
async def postgres_room() -> AsyncIterator[Room]:
    """Return an empty schema."""
    async with postgres.empty_schema() as schema:

        async def fill(stores: Stores, session: UUID, count: int) -> None:
            async with connection() as opened:
                for text in (COPY_JOBS, COPY_KEYS):
                    await opened.execute(text.format(schema=schema, first=FEW, last=count))
                # As the server does by itself in time.
                await opened.execute(f'VACUUM ANALYZE "{schema}".jobs, "{schema}".signals')

        async def done() -> Counter[str]:
            async with connection() as opened:
                # The account of a connection is complete when that is closed.
                ours = "SELECT count(*) = 0 FROM pg_stat_activity WHERE application_name = 'headrace'"
                await wait_until(lambda: opened.fetchval(ours))
                row = await opened.fetchrow(DONE, schema)
            return Counter({name: int(row[name]) for name in ("rows", "pages")})

        polls, wakes = {"rows": 5, "pages": 200}, {"rows": 50, "pages": 300}
        yield Room(lambda: postgres.stores_on(schema, None), fill, done, polls, wakes)


# Redis


@pytest.fixture
async def redis_room() -> AsyncIterator[Room]:
    """Return an empty namespace."""
    async with redis.empty_site() as site:

        async def done() -> Counter[str]:
            lines = valkey.shared_server().call("INFO", "commandstats").splitlines()
            found = [re.match(r"cmdstat_\S+:calls=(\d+),usec=(\d+)", line) for line in lines]
            told = [(int(one[1]), int(one[2])) for one in found if one is not None]
            return Counter({"commands": sum(calls for calls, _ in told), "microseconds": sum(time for _, time in told)})

        async def fill(stores: Stores, session: UUID, count: int) -> None:
            await park(stores, session, FEW, count)

        polls, wakes = {"commands": 40, "microseconds": 5_000}, {"commands": 60, "microseconds": 20_000}
        yield Room(lambda: redis.stores_on(site, None), fill, done, polls, wakes)


@pytest.fixture(params=["postgres", "redis"])
def room(request: pytest.FixtureRequest) -> Iterator[Room]:
    """Return a place on each store."""
    yield request.getfixturevalue(f"{request.param}_room")


@pytest.mark.parametrize("count", [10_000, pytest.param(100_000, marks=pytest.mark.slow)])
async def test_parked_jobs_cost_the_polls_nothing(room: Room, count: int) -> None:
    """A round of polls reads a handful, as many as with few jobs parked; a signal wakes its own job and no other."""
    async with room.open() as stores:
        session = await register(stores, DAY)
        await park(stores, session, 0, FEW)
        await room.fill(stores, session, count)
        assert await parked(stores) == count
    polls = await cost_of_polls(room, session)
    assert {kind: cost for kind, cost in polls.items() if cost > room.polls[kind]} == {}

    async def wake(stores: Stores) -> None:
        assert await stores.signals.send_signal(f"k{count // 2}", "1")

    waking = await cost_of(room, wake)
    assert {kind: cost for kind, cost in waking.items() if cost > room.wakes[kind]} == {}
    async with room.open() as stores:
        assert await parked(stores) == count - 1
        [job] = await stores.jobs.claim_jobs(Claim(session, "default", 10))
        assert (job.node, job.attempt) == (f"n{count // 2}", 2)
