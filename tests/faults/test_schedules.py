"""Leaders of schedules that freeze and wake up again: each fire time makes one job, and within 15 s.

Nobody waits for the next minute here: a test sets back how far the schedule is dealt with, and fire times have come.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from uuid import UUID

import asyncpg
import pytest

from tests.backends.valkey import ValkeyServer
from tests.faults.checker import read_leader, read_tables
from tests.faults.conftest import ON_EVERY_STORE
from tests.faults.failpoints import Failpoint, format_points, sides
from tests.faults.links import Links, observing
from tests.faults.scheduled import NAME
from tests.faults.site import Site, WorkerProcess
from tests.waiting import wait_until

#: Seconds from the freeze of a leader to the fire by another one, as promised.
PROMISED = 15.0
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Schedule:
    """The schedule of a site, as its tables or keys say."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.oldest = datetime.now(UTC).replace(second=0, microsecond=0)

    def start_worker(self) -> WorkerProcess:
        """Start a worker that declares it."""
        return self.site.start_worker(app="tests.faults.scheduled:app").wait_until_started()

    async def fire_once(self, *points: Failpoint, code: int = 0) -> None:
        """Let a process lead for a moment and fire what has come; it ends with an exit code."""
        await self.depose()
        process = self.site.start_script(FIRE_ONCE, format_points(list(points)))
        await asyncio.to_thread(process.communicate, timeout=30)
        assert process.returncode == code

    async def leader(self) -> UUID | None:
        """Return who leads now, by an id of his own."""
        return await read_leader(self.site.server.dsn, self.site.schema)

    async def depose(self) -> None:
        """Let the term of whoever leads be over."""
        raise NotImplementedError

    async def set_back(self, minutes: int) -> None:
        """Let the fire times of so many minutes before all that were due so far be due now."""
        raise NotImplementedError

    async def fired(self) -> int:
        """Return how many fire times were fired."""
        raise NotImplementedError

    async def jobs(self) -> tuple[int, int]:
        """Return how many jobs were made, and how many of them for a time that another one was made for."""
        tables = await read_tables(self.site.server.dsn, self.site.schema)
        # A job that ended between the two looks is in both.
        times = {row["id"]: json.loads(row["args"])["scheduled_at"] for row in [*tables.live, *tables.final]}
        return len(times), len(times) - len(set(times.values()))

    async def wait_until_fired(self, count: int) -> float:
        """Wait until so many fire times are fired and return how many seconds that took."""
        began = time.monotonic()

        async def enough() -> bool:
            return await self.fired() >= count

        await wait_until(enough, timedelta(seconds=40), message=f"{count} fires")
        return time.monotonic() - began


class PostgresSchedule(Schedule):
    """That in PostgreSQL."""

    def __init__(self, site: Site, observer: asyncpg.Connection) -> None:
        super().__init__(site)
        self._observer = observer

    async def depose(self) -> None:
        """Let nobody lead."""
        await self._observer.execute(f'DELETE FROM "{self.site.schema}".leader')

    async def set_back(self, minutes: int) -> None:
        """Write it into the schedule."""
        self.oldest -= timedelta(minutes=minutes)
        statement = 'UPDATE "{}".schedules SET next_at = now(), after_at = $1'
        await self._observer.execute(statement.format(self.site.schema), self.oldest)

    async def fired(self) -> int:
        """Count what the table of fires holds."""
        return int(await self._observer.fetchval(f'SELECT count(*) FROM "{self.site.schema}".schedule_fires'))


class RedisSchedule(Schedule):
    """That in a Redis store."""

    def _ask(self, command: str, key: str, *words: str | int) -> str:
        assert isinstance(self.site.server, ValkeyServer)
        answer = self.site.server.call(command, f"{{{self.site.schema}}}:{key}", *words)
        assert not answer.startswith("-"), answer
        return answer

    async def depose(self) -> None:
        """Let the term of the leader, if there is one, have ended long ago: what is left of it is its number."""
        if self._ask("EXISTS", "leader") == ":1":
            self._ask("HSET", "leader", "expires_at", 0)

    async def set_back(self, minutes: int) -> None:
        """Write it into the schedule."""
        self.oldest -= timedelta(minutes=minutes)
        key = f"schedule:{NAME}"
        self._ask("HSET", key, "next_at", _micros(datetime.now(UTC)), "after_at", _micros(self.oldest))

    async def fired(self) -> int:
        """Count the fires that are kept."""
        return int(self._ask("ZCARD", f"fires:{NAME}").removeprefix(":"))


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)


@pytest.fixture
async def schedule(site: Site) -> AsyncIterator[Schedule]:
    """Return the schedule of the site, on which nobody works yet."""
    if isinstance(site.server, ValkeyServer):
        yield RedisSchedule(site)
        return
    async with observing(site.server.dsn) as observer:
        yield PostgresSchedule(site, observer)


@pytest.mark.parametrize(
    ("site", "how"),
    [
        pytest.param("postgres", signal.SIGKILL, id="postgres-killed", marks=pytest.mark.slow),
        pytest.param("postgres", signal.SIGSTOP, id="postgres-frozen"),
        pytest.param("redis", signal.SIGKILL, id="redis-killed", marks=pytest.mark.slow),
        pytest.param("redis", signal.SIGSTOP, id="redis-frozen", marks=pytest.mark.slow),
    ],
    indirect=["site"],
)
async def test_a_leader_that_is_gone_is_followed_and_fires_nothing_twice(
    schedule: Schedule, how: signal.Signals
) -> None:
    """Another process leads within 15 s and fires what has come; a leader that wakes up again fires nothing twice."""
    leader = schedule.start_worker()
    await schedule.set_back(5)
    await schedule.wait_until_fired(5)
    led_by = await wait_until(schedule.leader)
    schedule.start_worker()

    async def led_by_another() -> bool:
        return await schedule.leader() not in (None, led_by)

    leader.signal(how)
    gone_at = time.monotonic()
    before = await schedule.fired()
    await schedule.set_back(10)
    await wait_until(led_by_another, timedelta(seconds=40))
    led = time.monotonic() - gone_at
    await schedule.wait_until_fired(before + 10)
    taken = time.monotonic() - gone_at
    # More that is due while the one that was frozen wakes up in the belief to lead.
    before = await schedule.fired()
    await schedule.set_back(10)
    if how is signal.SIGSTOP:
        leader.signal(signal.SIGCONT)
    await schedule.wait_until_fired(before + 10)
    fired, (jobs, doubles) = await schedule.fired(), await schedule.jobs()
    print(f"led {led:.1f} s and fired {taken:.1f} s after; {fired} fire times, {jobs} jobs, {doubles} double")
    assert (jobs, doubles) == (fired, 0)
    assert max(led, taken) <= PROMISED


@pytest.mark.slow
@ON_EVERY_STORE
async def test_leaders_that_freeze_in_turns(schedule: Schedule) -> None:
    """Three workers, whoever leads is frozen, four times over: no fire time is missing, and none is fired twice."""
    workers = [schedule.start_worker() for _ in range(3)]
    await schedule.set_back(1)
    await schedule.wait_until_fired(1)
    longest = 0.0
    for turn in range(4):
        # Who leads cannot be seen from outside: two of three are stopped, so that the third has to lead.
        kept = workers[turn % 3]
        others = [worker for worker in workers if worker is not kept]
        for worker in others:
            worker.signal(signal.SIGSTOP)
        before = await schedule.fired()
        await schedule.set_back(5)
        longest = max(longest, await schedule.wait_until_fired(before + 5))
        before = await schedule.fired()
        await schedule.set_back(5)
        for worker in others:
            worker.signal(signal.SIGCONT)
        await schedule.wait_until_fired(before + 5)
    fired, (jobs, doubles) = await schedule.fired(), await schedule.jobs()
    print(f"{fired} fire times, {jobs} jobs, {doubles} double; taken over within {longest:.1f} s")
    assert (jobs, doubles) == (fired, 0)
    assert longest <= PROMISED


@ON_EVERY_STORE
async def test_a_leader_cut_off_from_its_store_is_followed(schedule: Schedule, links: Links) -> None:
    """Its connections are ended again and again while times come due: each is fired once, by whoever leads."""
    schedule.start_worker()
    schedule.start_worker()
    for _ in range(20):
        await schedule.set_back(2)
        for number in random.sample(open_links := sorted(await links.ours()), min(3, len(open_links))):
            await links.cut(number)
    await schedule.wait_until_fired(40)
    assert await schedule.jobs() == (await schedule.fired(), 0)


#: A leader of one moment: it fires what has come, and meets its fault.
FIRE_ONCE = """
import asyncio, sys
from datetime import timedelta
from pathlib import Path
from uuid import uuid4
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.scheduler import make_scheduler
from headrace.engine.telemetry import Telemetry
from headrace.clock import SystemClock
from tests.faults import failpoints
from tests.faults.scheduled import app

async def main():
    failpoints.install(failpoints.parse_points(sys.argv[1]))
    async with app:
        stores = app.runtime.stores
        leadership = Leadership(stores, uuid4())
        leadership.term = await stores.sessions.lead(uuid4(), lease=timedelta(seconds=60))
        scheduler = make_scheduler(stores, leadership, app.declarations(), telemetry=Telemetry(), clock=SystemClock())
        await scheduler.declare()
        await scheduler.step()
        await stores.sessions.resign(leadership.term)

asyncio.run(main())
"""
#: What a fire passes in each store.
PLACES = {
    "postgres": (
        "ScheduleStore.fire_schedule", "move_schedule.sql", "note_fires.sql", "trim_fires.sql", "hold_term.sql",
        "ScheduleStore.due_schedules",
    ),
    "redis": ("fire_schedule.lua", "due_schedules.lua", "declare_schedules.lua"),
}  # fmt: skip
QUICK = {"note_fires.sql:after", "fire_schedule.lua:after"}
BOUNDARIES = [(store, side) for store, places in PLACES.items() for place in places for side in sides(place)]


@pytest.mark.parametrize(
    ("site", "boundary"),
    [pytest.param(*both, marks=[] if both[1] in QUICK else pytest.mark.slow) for both in BOUNDARIES],
    indirect=["site"],
)
async def test_a_leader_that_dies_in_the_middle_of_a_fire(schedule: Schedule, boundary: str) -> None:
    """Killed around each verb, statement and script of a fire: the times fire once, by it or by the next leader."""
    await schedule.fire_once()
    before = await schedule.fired()
    await schedule.set_back(3)
    await schedule.fire_once(Failpoint(boundary), code=-signal.SIGKILL)
    # All or nothing; a minute that begins meanwhile is one more.
    assert (await schedule.fired() - before) not in (1, 2)
    await schedule.fire_once()
    assert await schedule.fired() >= before + 3
    assert await schedule.jobs() == (await schedule.fired(), 0)
