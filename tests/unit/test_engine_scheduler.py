"""The scheduler on a memory store whose time the tests move: each fire time once, whoever leads."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.scheduler import RENEW_SECONDS, Scheduler
from headrace.engine.telemetry import Telemetry
from headrace.model.ids import uuid7
from headrace.model.job import JobSpec
from headrace.model.schedule import CatchUp, CronRule, Declaration
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.unit import cron_oracle

MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
CALL = '{"args":[],"kwargs":{}}'
HOURLY = Declaration("hourly", CronRule("0 * * * *"), JobSpec("work"), CALL)


class Site:
    """Stores and their clock, and the processes that schedule on them."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self.clock = FakeClock(start)
        self.stores: Stores = open_memory_stores(self.clock)
        assert self.stores.schedules is not None
        self.schedules = self.stores.schedules

    async def process(self, *declarations: Declaration) -> Process:
        """Start a worker's scheduler."""
        process = Process(self, declarations)
        await process.scheduler.declare()
        return process

    async def fired(self, name: str = "hourly") -> list[datetime]:
        """Return the fire times of a schedule in the order they were fired."""
        return [fire.fire_at for fire in reversed(await self.schedules.list_fires(name, limit=1_000))]

    async def jobs(self) -> int:
        """Return how many jobs there are."""
        return len(await self.stores.inspect.list_jobs(limit=10_000))


class Process:
    """Leadership and scheduler of one worker."""

    def __init__(self, site: Site, declarations: tuple[Declaration, ...]) -> None:
        self.leadership = Leadership(site.stores, uuid7())
        self.scheduler = Scheduler(
            site.schedules, self.leadership, declarations,
            notifier=site.stores.notifier, telemetry=Telemetry(), clock=site.clock,
        )  # fmt: skip

    async def turn(self) -> None:
        """Take one turn of each duty."""
        await self.leadership.step()
        await self.scheduler.step()


async def test_only_the_leader_fires() -> None:
    """A process without a term plans and fires nothing; all of them renew what they declare."""
    site = Site()
    leader, other = await site.process(HOURLY), await site.process(HOURLY)
    await leader.turn()
    for _ in range(120):
        site.clock.advance(MINUTE)
        await other.scheduler.step()
    assert await site.fired() == []
    await leader.turn()
    assert await site.jobs() == 1


async def test_two_years_of_schedules_in_all_zones_fire_each_time_once() -> None:
    """A night job and an hourly one per zone, two leaders in turns: every fire time of two years makes one job."""
    begin, end = cron_oracle.SPAN
    site = Site(begin - MINUTE)
    nightly = [Declaration(f"n{number}", CronRule("30 2 * * *", tz), JobSpec("work"), CALL) for number, tz in ZONES]
    dawn = [
        Declaration(f"d{number}", CronRule("*/20 2 * 3,10,11 0", tz), JobSpec("work"), CALL) for number, tz in ZONES
    ]
    processes = [await site.process(*nightly, *dawn) for _ in range(2)]
    turn = 0
    while site.clock.now() < end:
        await site.schedules.declare_schedules([*nightly, *dawn], renew=True)
        turn += 1
        await processes[turn // 50 % 2].leadership.resign()
        await processes[(turn // 50 + 1) % 2].turn()
        due = await site.schedules.due_schedules(limit=1)
        assert due.next_at is not None
        site.clock.set_now(due.next_at)
    for number, tz in ZONES:
        assert await site.fired(f"n{number}") == cron_oracle.given("30 2 * * *", tz)
        assert await site.fired(f"d{number}") == cron_oracle.shown(DAWN, tz)


ZONES = list(enumerate(cron_oracle.ZONES))
DAWN = "*/20 2 * 3,10,11 0"


@pytest.mark.parametrize("step", [HOUR, -HOUR, timedelta(days=3653), -timedelta(days=3653)])
@pytest.mark.parametrize("catch_up", CatchUp)
async def test_no_step_of_the_clock_fires_a_time_twice(step: timedelta, catch_up: CatchUp) -> None:
    """An hour or ten years forth or back, and back again: no fire time makes two jobs, and the schedule goes on."""
    site = Site()
    process = await site.process(replace(HOURLY, rule=CronRule("*/10 * * * *", catch_up=catch_up)))

    async def work(minutes: int) -> None:
        for _ in range(minutes):
            await process.turn()
            site.clock.advance(MINUTE)

    await work(65)
    site.clock.set_now(site.clock.now() + step)
    await work(65)
    site.clock.set_now(site.clock.now() - step)
    before = await site.jobs()
    await work(65 + 60)
    fired = await site.fired()
    assert len(set(fired)) == len(fired) == await site.jobs()
    assert await site.jobs() >= before + 6


async def test_a_leader_that_was_frozen_past_its_term_fires_nothing() -> None:
    """It wakes up in the belief to lead, another one having fired since: nothing is fired twice, nothing is missing."""
    site = Site()
    frozen, other = await site.process(HOURLY), await site.process(HOURLY)
    await frozen.turn()
    for _ in range(3):
        site.clock.advance(HOUR)
        await site.schedules.declare_schedules([HOURLY], renew=True)
        await other.turn()
        assert frozen.leadership.term is not None
        await frozen.scheduler.step()
        frozen, other = other, frozen
    assert await site.fired() == [site.clock.now() - number * HOUR for number in (2, 1, 0)]
    assert await site.jobs() == 3


async def test_a_takeover_is_on_time_whatever_the_policy() -> None:
    """A leader that dies before a fire time is followed within its lease, which no policy calls missed."""
    site = Site()
    dying, other = await site.process(HOURLY), await site.process(HOURLY)
    site.clock.advance(HOUR - timedelta(seconds=1))
    await site.schedules.declare_schedules([HOURLY], renew=True)
    await dying.turn()
    for _ in range(15):
        site.clock.advance(timedelta(seconds=1))
        await other.turn()
    assert await site.fired() == [datetime(2026, 1, 1, 1, tzinfo=UTC)]


async def test_a_schedule_lives_on_while_a_worker_has_it() -> None:
    """Its worker renews it each minute for as long as it runs, also when another one leads."""
    site = Site()
    leader, owner = await site.process(), await site.process(HOURLY)
    for minute in range(6 * 60):
        await leader.turn()
        if minute < 4 * 60:
            await owner.turn()
        site.clock.advance(timedelta(seconds=RENEW_SECONDS))
    assert len(await site.fired()) == 4
    [view] = await site.schedules.list_schedules()
    assert not view.declared


async def test_a_schedule_that_cannot_fire_holds_up_no_other(caplog: pytest.LogCaptureFixture) -> None:
    """One whose zone is not known on this machine is named in the log, once, while the others go on."""
    site = Site()
    process = await site.process(replace(HOURLY, name="a", rule=CronRule("0 * * * *", "Mars/Olympus")), HOURLY)
    for _ in range(65):
        await process.turn()
        site.clock.advance(MINUTE)
    assert len(await site.fired()) == 1
    assert await site.fired("a") == []
    [complaint] = [record.message for record in caplog.records if "cannot fire" in record.message]
    assert complaint.startswith("schedule a cannot fire: tz must be a time zone of the IANA database")
    assert "Mars/Olympus" in complaint


async def test_the_scheduler_wakes_near_the_next_fire_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within its last second it does not wait for its next turn."""
    site = Site()
    process = await site.process(HOURLY)
    woken: list[float] = []
    monkeypatch.setattr(process.scheduler, "wake_in", woken.append)
    await process.turn()
    site.clock.advance(HOUR - timedelta(milliseconds=300))
    await site.schedules.declare_schedules([HOURLY], renew=True)
    await process.turn()
    await process.turn()
    assert woken[-1] == pytest.approx(0.3)
