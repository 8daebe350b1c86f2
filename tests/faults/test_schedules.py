"""Leaders of schedules that freeze and wake up again: each fire time makes one job, and within 15 s.

Nobody waits for the next minute here: a test sets back how far the schedule is dealt with, and fire times have come.
"""

from __future__ import annotations

import asyncio
import signal
import time
from datetime import UTC, datetime, timedelta

import asyncpg
import pytest

from tests.faults.failpoints import Failpoint, format_points, sides
from tests.faults.site import Site, WorkerProcess
from tests.waiting import wait_until

#: Seconds from the freeze of a leader to the fire by another one, as promised.
PROMISED = 15.0
JOBS = """SELECT count(*) AS jobs, count(*) - count(DISTINCT args ->> 'scheduled_at') AS doubles
    FROM (SELECT args FROM "{0}".jobs UNION ALL SELECT args FROM "{0}".finished_jobs) AS made"""


class Schedule:
    """The schedule of a site, as its tables say."""

    def __init__(self, site: Site, observer: asyncpg.Connection) -> None:
        self.site, self.observer = site, observer
        self.oldest = datetime.now(UTC).replace(second=0, microsecond=0)

    def start_worker(self) -> WorkerProcess:
        """Start a worker that declares it."""
        return self.site.start_worker(app="tests.faults.scheduled:app").wait_until_started()

    async def fire_once(self, *points: Failpoint, code: int = 0) -> None:
        """Let a process lead for a moment and fire what has come; it ends with an exit code."""
        await self.observer.execute(f'DELETE FROM "{self.site.schema}".leader')
        process = self.site.start_script(FIRE_ONCE, format_points(list(points)))
        await asyncio.to_thread(process.communicate, timeout=30)
        assert process.returncode == code

    async def set_back(self, minutes: int) -> None:
        """Let the fire times of so many minutes before all that were due so far be due now."""
        self.oldest -= timedelta(minutes=minutes)
        statement = 'UPDATE "{}".schedules SET next_at = now(), after_at = $1'
        await self.observer.execute(statement.format(self.site.schema), self.oldest)

    async def fired(self) -> int:
        """Return how many fire times were fired."""
        return int(await self.observer.fetchval(f'SELECT count(*) FROM "{self.site.schema}".schedule_fires'))

    async def jobs(self) -> tuple[int, int]:
        """Return how many jobs were made, and how many of them for a time that another one was made for."""
        row = await self.observer.fetchrow(JOBS.format(self.site.schema))
        return row["jobs"], row["doubles"]

    async def wait_until_fired(self, count: int) -> float:
        """Wait until so many fire times are fired and return how many seconds that took."""
        began = time.monotonic()

        async def enough() -> bool:
            return await self.fired() >= count

        await wait_until(enough, timedelta(seconds=40), message=f"{count} fires")
        return time.monotonic() - began


@pytest.fixture
async def schedule(site: Site, observer: asyncpg.Connection) -> Schedule:
    """Return the schedule of the site, on which nobody works yet."""
    return Schedule(site, observer)


async def freeze_and_take_over(schedule: Schedule, frozen: WorkerProcess, minutes: int) -> float:
    """Freeze a leader, let times come, wait for another one's fires, wake it up; return how long they took."""
    frozen.signal(signal.SIGSTOP)
    before = await schedule.fired()
    await schedule.set_back(minutes)
    taken = await schedule.wait_until_fired(before + minutes)
    # More that is due while it wakes up in the belief to lead.
    before = await schedule.fired()
    await schedule.set_back(minutes)
    frozen.signal(signal.SIGCONT)
    await schedule.wait_until_fired(before + minutes)
    return taken


async def test_a_frozen_leader_is_followed_and_fires_nothing_twice(schedule: Schedule) -> None:
    """Stopped past its term and woken up, it finds another one leading: double fires 0, the others' within 15 s."""
    leader = schedule.start_worker()
    await schedule.set_back(5)
    await schedule.wait_until_fired(5)
    schedule.start_worker()

    taken = await freeze_and_take_over(schedule, leader, 10)
    fired, (jobs, doubles) = await schedule.fired(), await schedule.jobs()
    print(f"{fired} fire times, {jobs} jobs, {doubles} double; taken over {taken:.1f} s after the freeze")
    assert (jobs, doubles) == (fired, 0)
    assert taken <= PROMISED


@pytest.mark.slow
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


async def test_a_leader_cut_off_from_its_store_is_followed(schedule: Schedule, observer: asyncpg.Connection) -> None:
    """Its connections are ended again and again while times come due: each is fired once, by whoever leads."""
    schedule.start_worker()
    schedule.start_worker()
    for _ in range(20):
        await schedule.set_back(2)
        await observer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'headrace' "
            "AND pid <> pg_backend_pid() ORDER BY random() LIMIT 3"
        )
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
BOUNDARIES = [
    side
    for place in (
        "ScheduleStore.fire_schedule", "move_schedule.sql", "note_fires.sql", "trim_fires.sql", "hold_term.sql",
        "ScheduleStore.due_schedules",
    )
    for side in sides(place)
]  # fmt: skip
QUICK = {"note_fires.sql:after", "hold_term.sql:after", "ScheduleStore.fire_schedule:after"}


@pytest.mark.parametrize(
    "boundary", [pytest.param(name, marks=[] if name in QUICK else pytest.mark.slow) for name in BOUNDARIES]
)
async def test_a_leader_that_dies_in_the_middle_of_a_fire(schedule: Schedule, boundary: str) -> None:
    """Killed before and after each verb and statement of a fire: the times fire once, by it or by the next leader."""
    await schedule.fire_once()
    await schedule.set_back(3)
    await schedule.fire_once(Failpoint(boundary), code=-signal.SIGKILL)
    assert await schedule.fired() in (0, 3)
    await schedule.fire_once()
    assert await schedule.fired() >= 3
    assert await schedule.jobs() == (await schedule.fired(), 0)
