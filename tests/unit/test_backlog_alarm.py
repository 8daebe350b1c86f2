"""The backlog alarm: once per crossing, on the leader, by what is declared of a queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from headrace.engine.loops.backlog_alarm import BacklogAlarm, declare_alarms
from headrace.engine.loops.leadership import Leadership
from headrace.engine.telemetry import Telemetry
from headrace.model.backlog import Alarm, Backlog
from headrace.model.errors import InvalidInputError
from headrace.model.ids import uuid7
from headrace.model.job import JobSpec, NewJob
from headrace.model.queue import QueueRule
from headrace.ports.stores import Stores
from headrace.stores.memory import open_memory_stores
from headrace.testing.clock import FakeClock
from tests.conformance.scenario import ARGS
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

MINUTE = timedelta(minutes=1)


class Watched:
    """A leader's loop over a queue with an alarm, and what it told."""

    def __init__(self, stores: Stores) -> None:
        self.stores = stores
        self.telemetry = Telemetry()
        self.told: list[Backlog] = []
        self.leadership = Leadership(stores, uuid7())
        self.loop = BacklogAlarm(stores, self.leadership, self.telemetry, hooks=[self.told.append])

    async def look(self, waiting: int) -> list[bool]:
        """Let so many jobs wait, look, and return what the hook was told of the crossing so far."""
        jobs = await self.stores.inspect.list_jobs(queue="llm", limit=1_000)
        for job in jobs[waiting:]:
            await self.stores.control.cancel_job(job.id)
        await self.stores.jobs.insert_jobs([NewJob(JobSpec("work", "llm"), ARGS) for _ in range(waiting - len(jobs))])
        await self.loop.step()
        return [backlog.rings for backlog in self.told]


@pytest.fixture
def clock() -> FakeClock:
    """Return a clock that the test moves."""
    return FakeClock()


@pytest.fixture
async def watched(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Watched]:
    """Return a leading loop; `llm` is alarmed at ten jobs or after a minute."""
    watched = Watched(open_memory_stores(clock=clock))
    live = watched.stores.inspect.list_jobs

    async def ready(**options: Any) -> Any:
        return [job for job in await live(**options) if not job.state.final]

    monkeypatch.setattr(watched.stores.inspect, "list_jobs", ready)
    await watched.leadership.step()
    await watched.stores.control.set_alarms({"llm": Alarm(10, MINUTE)})
    yield watched


async def test_a_backlog_rings_once_per_crossing(watched: Watched, caplog: pytest.LogCaptureFixture) -> None:
    """It rings at its size, is silent while it hovers above 80 % of it, and rings again after it was over."""
    caplog.set_level(logging.INFO, "headrace.queues.backlog")
    assert await watched.look(9) == []
    assert await watched.look(10) == [True]
    for waiting in (12, 9, 11, 10, 9):
        assert await watched.look(waiting) == [True]
    assert watched.telemetry.value("headrace.queues.alarmed") == 1
    assert await watched.look(8) == [True, False]
    assert watched.telemetry.value("headrace.queues.alarmed") == 0
    assert await watched.look(9) == [True, False]
    assert await watched.look(10) == [True, False, True]
    assert watched.telemetry.value("headrace.queues.backlog") == 2
    lines = [(record.levelname, record.getMessage().split(",")[0]) for record in caplog.records]
    assert lines == [
        ("WARNING", "queue llm: 10 jobs are ready"),
        ("INFO", "queue llm: 8 jobs are ready"),
        ("WARNING", "queue llm: 10 jobs are ready"),
    ]
    assert "alarm at 10 jobs or 1m" in caplog.records[0].getMessage()
    assert "no alarm any more" in caplog.records[1].getMessage()


async def test_a_job_that_waits_too_long_rings(watched: Watched, clock: FakeClock) -> None:
    """One job that has been ready for the age is an alarm, until the oldest is young again."""
    assert await watched.look(1) == []
    clock.advance(MINUTE)
    await watched.leadership.step()
    assert await watched.look(1) == [True]
    assert watched.told[0].oldest_ready_age == MINUTE
    assert await watched.look(0) == [True, False]


async def test_only_the_leader_rings(watched: Watched) -> None:
    """Another process looks and says nothing."""
    other = Watched(watched.stores)
    await other.leadership.step()
    assert other.leadership.term is None
    assert await other.look(20) == []
    await watched.loop.step()
    assert [backlog.rings for backlog in watched.told] == [True]


async def test_who_leads_no_more_shows_no_alarm(watched: Watched, clock: FakeClock) -> None:
    """The gauge of a former leader is zero: the next leader's shows what is alarmed."""
    assert await watched.look(10) == [True]
    clock.advance(10 * MINUTE)
    other = Watched(watched.stores)
    await other.leadership.step()
    await watched.leadership.step()
    assert watched.leadership.term is None
    await watched.loop.step()
    assert watched.telemetry.value("headrace.queues.alarmed") == 0


async def test_without_an_alarm_no_queue_is_counted(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no queue has an alarm the figures of queues are not asked for."""

    async def surprise() -> Any:
        raise AssertionError("asked for figures")

    await watched.stores.control.set_alarms({"llm": Alarm()})
    monkeypatch.setattr(watched.stores.inspect, "queue_stats", surprise)
    assert await watched.look(20) == []


async def test_a_hook_that_fails_stops_neither_the_others_nor_the_loop(watched: Watched) -> None:
    """An error of a hook is logged; the next hook is told, a coroutine too."""
    heard: list[str] = []

    def broken(backlog: Backlog) -> None:
        raise ValueError("no pager")

    async def page(backlog: Backlog) -> None:
        heard.append(backlog.queue)

    loop = BacklogAlarm(watched.stores, watched.leadership, Telemetry(), hooks=[broken, page])
    await watched.stores.jobs.insert_jobs([NewJob(JobSpec("work", "llm"), ARGS) for _ in range(10)])
    await loop.step()
    assert heard == ["llm"]


async def test_alarms_are_declared_when_they_changed(watched: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    """A declared queue without an alarm loses the one it had; what is the same is not written again."""
    control = watched.stores.control
    await declare_alarms(watched.stores, [QueueRule("llm", alarm=Alarm(10, MINUTE)), QueueRule("mail")])
    assert set(await control.queue_states()) == {"llm"}
    await declare_alarms(watched.stores, [QueueRule("llm"), QueueRule("mail", alarm=Alarm(5))])
    states = await control.queue_states()
    assert (states["llm"].alarm, states["mail"].alarm) == (Alarm(), Alarm(5))


async def test_a_worker_declares_and_raises_what_its_app_says() -> None:
    """`app.queue(alarm_size=…)` and `@app.on_backlog` are all it takes; stats mark the queue."""
    app = quick_app()
    app.queue("llm", alarm_size=3)
    told = asyncio.Event()

    @app.task(queue="idle")
    async def idle() -> None:
        """Have a queue to serve."""

    @app.on_backlog
    async def page(backlog: Backlog) -> None:
        if (backlog.queue, backlog.ready, backlog.rings) == ("llm", 3, True):
            told.set()

    async with app:
        await app.runtime.stores.jobs.insert_jobs([NewJob(JobSpec("work", "llm"), ARGS) for _ in range(3)])
        async with app.worker() as worker:
            loop = next(loop for loop in worker._loops if isinstance(loop, BacklogAlarm))
            await wait_until(lambda: worker._leadership.term is not None)
            loop.wake()
            await asyncio.wait_for(told.wait(), 10)
        [stats] = [one for one in await app.runtime.stores.inspect.queue_stats() if one.name == "llm"]
        assert stats.alarmed


@pytest.mark.parametrize(("field", "values"), [("alarm_size", {"size": 0}), ("alarm_age", {"age": "0s"})])
def test_a_wrong_alarm_is_named(field: str, values: dict[str, Any]) -> None:
    """A wrong threshold is refused with its field."""
    with pytest.raises(InvalidInputError) as refused:
        Alarm.parse(**values)
    assert refused.value.field == field
