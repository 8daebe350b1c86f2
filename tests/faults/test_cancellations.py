"""Tasks cancelled at any await of a client's call or of a handler: nothing is lost, and nothing stays taken."""

from __future__ import annotations

import asyncio
import json
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from headrace import App, JobHandle
from headrace.model.batch import BatchOutcome
from headrace.model.errors import JobCancelledError
from headrace.model.job import JobState
from tests.faults.cancelling import cancel_at
from tests.faults.checker import check
from tests.faults.conftest import ON_EVERY_STORE
from tests.faults.links import Links
from tests.faults.redis_witness import is_redis
from tests.faults.site import Site
from tests.faults.tasks import careful, effect, many_steps, report
from tests.faults.test_workers_die import settled
from tests.waiting import wait_until

SEED = int(os.environ.get("FAULTS_SEED", "1"))
#: Seconds at most from a wait to its cancellation, so that an answer is sometimes on its way.
LATEST = 0.003
#: More awaits than the longest call makes.
NEVER = 200
#: How often an await is met at most until a cancellation comes before its answer.
TRIES = 4
ITEMS = 10
CALLS = {
    "postgres": ["single", "keyed", "listed", "streamed", "within", "awaited", "read"],
    # A transaction of the caller's own is nothing that a Redis server has.
    "redis": ["single", "keyed", "listed", "streamed", "awaited", "read"],
}
LANES, CALLS_OF_A_LANE = 6, 15
#: The awaits that calls at random moments are cancelled at: on Redis most have one or two.
AWAITS = {"postgres": [1, 2, 3], "redis": [1, 1, 2]}
#: Seconds at most from there to the cancellation.
MOMENT = {"postgres": LATEST, "redis": LATEST / 4}
#: Seconds at most that workers stay which come and go: on Redis all is done sooner.
STAY = {"postgres": 30 * LATEST, "redis": 4 * LATEST}
#: As much longer they stay after one that no job ended with: how long a job takes is the machine's affair.
LONGER = 1.1
#: More jobs than a careful one has awaits.
HANDLERS = 60
MOST_WORKERS = 200

Call = Callable[[int], Coroutine[Any, Any, None]]


class Caller:
    """Calls of a client, each under a number of its own; sent again, a call has the same keys."""

    def __init__(self, app: App, dsn: str) -> None:
        self._app, self._dsn = app, dsn
        self._fresh = count(1_000_000)
        self.acknowledged: set[UUID] = set()
        self.batches: set[UUID] = set()

    async def single(self, _number: int) -> None:
        """Enqueue a job that has no key: sent again it is another one."""
        self.acknowledged.add((await effect.enqueue(next(self._fresh))).id)

    async def keyed(self, number: int) -> None:
        """Enqueue a job under a key."""
        self.acknowledged.add((await effect.options(key=f"job-{number}").enqueue(number * 100)).id)

    async def listed(self, number: int) -> None:
        """Submit a list."""
        batch = await self._app.submit(effect, self._numbers(number), key=f"list-{number}", on_close=report)
        self.batches.add(batch.id)

    async def streamed(self, number: int) -> None:
        """Submit a stream."""
        stream = iter(self._numbers(number))
        batch = await self._app.submit(effect, stream, key=f"stream-{number}", on_close=report)
        self.batches.add(batch.id)

    async def within(self, number: int) -> None:
        """Enqueue in a transaction of the caller's own."""
        async with lent(self._dsn) as connection:
            async with self._app.transaction(connection):
                job = await effect.options(key=f"within-{number}", connection=connection).enqueue(number * 100)
            self.acknowledged.add(job.id)

    async def awaited(self, number: int) -> None:
        """Enqueue and wait for the result."""
        assert await (await effect.options(key=f"wait-{number}").enqueue(number * 100)).result(20) == number * 100

    async def read(self, number: int) -> None:
        """Submit and read the results, then cancel what has ended."""
        batch = await self._app.submit(effect, self._numbers(number), key=f"read-{number}", on_close=report)
        assert {item.result async for item in batch.results()} == set(self._numbers(number))
        assert (await batch.wait(20)).outcome is BatchOutcome.SUCCEEDED

    @staticmethod
    def _numbers(number: int) -> range:
        return range(number * 100, number * 100 + ITEMS)


@asynccontextmanager
async def lent(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    """Lend a connection of the caller's own, which is closed also when its user was cancelled."""
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        connection.terminate()


class PostgresConnections:
    """The pools of an open app."""

    def __init__(self, app: App) -> None:
        jobs: Any = app.runtime.stores.jobs
        self._pools = [jobs._database._pool, jobs._hot._pool]

    def free(self) -> bool:
        """Whether every place of the pools is free."""
        places = [(pool._room._value, len(pool._idle) <= pool._size) for pool in self._pools]
        return places == [(pool._size, True) for pool in self._pools]

    async def forget(self) -> None:
        """Let the next calls connect anew."""
        for pool in self._pools:
            while pool._idle:
                pool._idle.pop().terminate()


class RedisConnections:
    """The connections that all calls of an open app share."""

    def __init__(self, app: App) -> None:
        jobs: Any = app.runtime.stores.jobs
        self._server = jobs._namespace._server

    def free(self) -> bool:
        """Whether every command was answered, and no more are open than may be."""
        wires = self._server._wires
        return len(wires) <= self._server.options.size and not any(wire.waiting for wire in wires)

    async def forget(self) -> None:
        """Let the next calls connect anew, as soon as nobody else waits for an answer."""
        await wait_until(self.free)
        while self._server._wires:
            self._server._wires.pop().abort()


def store_of(site: Site) -> str:
    """Return which store a site has."""
    return "redis" if is_redis(site.server.dsn) else "postgres"


def connections_of(app: App) -> PostgresConnections | RedisConnections:
    """Return what an open app has open for its calls."""
    return RedisConnections(app) if is_redis(str(app.settings.queue.url)) else PostgresConnections(app)


async def nothing_taken(app: App, links: Links) -> None:
    """Expect all connections to be free at some moment, and no transaction open that nobody goes on with."""

    async def free() -> bool:
        return connections_of(app).free() and not await links.in_transaction()

    await wait_until(free)


async def cancel_at_every_await(app: App, call: Call, numbers: count[int], *, connected: bool) -> int:
    """Cancel a call at its first await, at its second and so on, and send each again; return how many it has."""
    for at in range(1, NEVER):
        if not await cancelled_once(app, call, numbers, at, connected=connected):
            return at - 1
    raise AssertionError("the call has no end")


async def cancelled_once(app: App, call: Call, numbers: count[int], at: int, *, connected: bool) -> bool:
    """Return whether a call can be cancelled at its n-th await: an answer that is there already is faster."""
    for _ in range(TRIES):
        number = next(numbers)
        if not connected:
            await connections_of(app).forget()
        was_cancelled = await cancel_at(call(number), at)
        await call(number)
        if was_cancelled:
            return True
    return False


@asynccontextmanager
async def calling(site: Site, app: App, links: Links) -> AsyncIterator[Caller]:
    """Work jobs and lend a caller; afterwards all it was told of is there, once, and nothing stays taken."""
    before = len(await links.ours())
    caller = Caller(app, site.server.dsn)
    async with app.worker(concurrency=10):
        yield caller
        await nothing_taken(app, links)
        assert len(await links.ours()) <= before + app.settings.queue.max_pool_size
        for batch_id in caller.batches:
            assert (await app.batch(batch_id).wait(20)).total == ITEMS
        await settled(app)
    verdict = await check(site, caller.acknowledged)
    assert verdict.clean, verdict


@pytest.mark.parametrize(
    ("site", "name"), [(store, name) for store, names in CALLS.items() for name in names], indirect=["site"]
)
async def test_a_client_cancelled_at_any_await_loses_nothing(site: Site, app: App, links: Links, name: str) -> None:
    """Sent again it is the same job or batch; no place of the pools stays taken, and no transaction open."""
    async with calling(site, app, links) as caller:
        call, numbers = getattr(caller, name), count(1)
        awaits, more = [
            await cancel_at_every_await(app, call, numbers, connected=connected) for connected in (True, False)
        ]
    print(f"{name}: cancelled at each of {awaits} awaits, and of {more} with those of a new connection")
    assert min(awaits, more) > 0
    # The connection that calls on Redis share is made by a task of its own: they wait for that, and for nothing more.
    assert awaits <= more or store_of(site) == "redis"


@ON_EVERY_STORE
async def test_clients_cancelled_at_random_moments_lose_nothing(site: Site, app: App, links: Links) -> None:
    """The same for calls side by side on a small pool, cancelled also while their answers are on the way."""
    app.settings = site.settings(HEADRACE_QUEUE_MAX_POOL_SIZE="6")
    numbers, cancelled = count(1), 0
    store = store_of(site)

    async def lane(caller: Caller, chance: random.Random) -> None:
        nonlocal cancelled
        for _ in range(CALLS_OF_A_LANE):
            call, number = getattr(caller, chance.choice(CALLS[store])), next(numbers)
            later = chance.choice([0.0, chance.uniform(0.0, MOMENT[store])])
            cancelled += await cancel_at(call(number), chance.choice(AWAITS[store]), later)
            await call(number)

    async with calling(site, app, links) as caller:
        await asyncio.gather(*(lane(caller, random.Random(f"{SEED}-{lane_number}")) for lane_number in range(LANES)))
    print(f"seed {SEED}: {cancelled} of {LANES * CALLS_OF_A_LANE} calls were cancelled")
    assert cancelled >= LANES * CALLS_OF_A_LANE // 5


@ON_EVERY_STORE
async def test_a_handler_cancelled_at_any_await_runs_again(site: Site, app: App, links: Links) -> None:
    """Its next attempt finds the steps, jobs and batches of the one before; slots and connections are free again."""
    async with app.worker(concurrency=4):
        jobs = [await careful.enqueue(number, at=number) for number in range(1, HANDLERS)]
        results = [await job.result(20) for job in jobs]
        for job, (_, first, second) in zip(jobs, results, strict=True):
            steps = await app.runtime.stores.jobs.load_steps(job.id)
            assert {name: json.loads(text) for name, text in steps.items()} == {"first": first, "second": second}
        await settled(app)
        await nothing_taken(app, links)
        views = [await app.runtime.stores.inspect.get_job(job.id) for job in jobs]
    attempts = [attempt for attempt, _, _ in results]
    print(f"{attempts.count(2)} of {len(attempts)} handlers were cancelled")
    # The last ones had ended before: no await was left out.
    assert (attempts[0], attempts[-1], set(attempts)) == (2, 1, {1, 2})
    # Nobody asked for it, so it counts as a failure of the handler.
    assert [(view.failures, view.crashes) for view in views if view] == [(attempt - 1, 0) for attempt in attempts]
    assert set(site.counts("effect")) >= {1_000 + number for number in range(1, HANDLERS)}
    verdict = await check(site, [job.id for job in jobs])
    assert verdict.clean, verdict


@ON_EVERY_STORE
async def test_handlers_released_at_random_moments_are_not_charged(site: Site, app: App, links: Links) -> None:
    """Workers that come and go without grace stop handlers at any await: they run again, uncharged, until they end."""
    chance = random.Random(SEED)
    async with app:
        jobs = [await careful.enqueue(number) for number in range(1, HANDLERS // 2)]
        workers, left, longest = 0, len(jobs), STAY[store_of(site)]
        while left:
            workers += 1
            assert workers < MOST_WORKERS, f"{left} jobs are left"
            async with app.worker(concurrency=4, grace=0):
                await asyncio.sleep(chance.uniform(0.0, longest))
            before, left = left, len([job for job in jobs if not (await job.status()).final])
            longest *= LONGER if left == before else 1.0
        await nothing_taken(app, links)
        views = [await app.runtime.stores.inspect.get_job(job.id) for job in jobs]
    released = sum(view.attempt - 1 for view in views if view)
    print(f"seed {SEED}: {workers} workers, {released} attempts released")
    assert released > 0
    assert {(view.state, view.failures, view.crashes) for view in views if view} == {(JobState.SUCCEEDED, 0, 0)}


@ON_EVERY_STORE
async def test_jobs_cancelled_at_random_moments_end_once(site: Site, app: App, links: Links) -> None:
    """An operator's cancel in the middle of steps: the job is cancelled, or has succeeded, and its slot is free."""
    app.settings = site.settings(HEADRACE_WORKER_HEARTBEAT_INTERVAL="50ms")
    chance = random.Random(SEED)
    async with app.worker(concurrency=4):
        jobs = [await many_steps.enqueue(number, 3_000) for number in range(20)]
        for number, job in enumerate(jobs):
            await wait_until(lambda number=number: site.counts("start")[number])  # type: ignore[misc]
            await asyncio.sleep(chance.uniform(0.0, 10 * LATEST))
            await job.cancel()
        states = Counter([await ended(job) for job in jobs])
        await settled(app)
        await nothing_taken(app, links)
    print(f"seed {SEED}: {dict(states)}")
    assert states[JobState.CANCELLED] >= 10
    assert states[JobState.CANCELLED] + states[JobState.SUCCEEDED] == 20
    verdict = await check(site, [job.id for job in jobs])
    assert verdict.clean, verdict


async def ended(job: JobHandle[Any]) -> JobState:
    """Wait for a job and return how it ended."""
    with suppress(JobCancelledError):
        await job.result(20)
    return await job.status()
