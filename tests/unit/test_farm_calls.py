"""Calls in a process of a farm, on a store in memory: begun once, whatever the store answers, and ended once."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any, NoReturn
from uuid import UUID

import pytest

from headrace import App, Context
from headrace import farm as processes
from headrace import farm_calls as module
from headrace.engine.attempt import StopReason
from headrace.farm import FarmProcess
from headrace.farm_calls import FarmCalls
from headrace.model.errors import StoreUnavailableError
from headrace.model.farm import BEGUN, ENDED, PAID, Begun, Fence
from headrace.model.job import Claim
from headrace.model.session import NewSession, ProcessId
from headrace.model.usage import Usage, current_meter
from headrace.tasks import Task
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until, wait_until_sync


class EndedError(Exception):
    """The process would have ended."""


class Link:
    """A link that hears nothing."""

    async def hear_stops(self, _on_hint: Any) -> None:
        """Hear nothing."""

    async def tell_end(self, _fence: Fence) -> None:
        """Tell nobody."""

    async def close(self) -> None:
        """Do nothing."""


@pytest.fixture(autouse=True)
def ends(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note why the process would have ended."""
    whys: list[str] = []

    def end(why: str) -> NoReturn:
        whys.append(why)
        raise EndedError(why)

    monkeypatch.setattr(module, "end_process", end)
    monkeypatch.setattr(module, "_AGAIN_SECONDS", 0.001)
    return whys


@asynccontextmanager
async def calls_of(app: App) -> AsyncIterator[FarmCalls]:
    """Open an app as a process of a farm does."""
    calls = FarmCalls(app, "w", Link())  # type: ignore[arg-type]
    try:
        await calls.open()
        yield calls
    finally:
        await calls.close()


async def claimed(app: App, task: Task[..., Any], *args: Any) -> Fence:
    """Let a worker claim a job, and return its fence."""
    stores = app.runtime.stores
    job = await task.enqueue(*args)
    session = NewSession(ProcessId("elsewhere", 1, 1), "elsewhere", {"default": 1}, timedelta(hours=1))
    await stores.sessions.register_session(session)
    [taken] = await stores.jobs.claim_jobs(Claim(session.id, "default", 1))
    assert taken.id == job.id
    return Fence(taken.id, taken.attempt, session.id)


def lose_answers(app: App, monkeypatch: pytest.MonkeyPatch, name: str, times: int) -> None:
    """Let the store take a step of a name and not answer, so often."""
    jobs, left = app.runtime.stores.jobs, [times]
    save = jobs.save_step

    async def lossy(job: UUID, **step: Any) -> str:
        stored = await save(job, **step)
        if step["name"].startswith(name) and left[0]:
            left[0] -= 1
            raise StoreUnavailableError("the answer was lost")
        return stored

    monkeypatch.setattr(jobs, "save_step", lossy)


async def ended(app: App, fence: Fence) -> dict[str, Any]:
    """Return how an attempt ended."""
    steps = await app.runtime.stores.jobs.load_steps(fence.job)
    completion: dict[str, Any] = json.loads(steps[ENDED])["completion"]
    return completion


@pytest.mark.parametrize("name", ["headrace:begun", "headrace:ended"])
async def test_an_answer_of_the_store_that_was_lost_costs_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same sign, and the same end, are written again until the answer comes."""
    app, runs = quick_app(), []

    @app.task
    async def work(number: int) -> int:
        runs.append(number)
        return number

    async with calls_of(app) as calls:
        fence = await claimed(app, work, 7)
        lose_answers(app, monkeypatch, name, 3)
        await calls.work(fence)
        assert ((await ended(app, fence))["result"], runs) == ("7", [7])
        await calls.work(fence)
        assert runs == [7]


async def test_a_store_that_stays_away_costs_the_process(ends: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What may have begun must not be lost silently: the worker that sent it sees that its process is gone."""
    monkeypatch.setattr(module, "BEGIN_SECONDS", 0.02)
    app, runs = quick_app(), []

    @app.task
    async def work() -> None:
        runs.append(1)

    async with calls_of(app) as calls:
        fence = await claimed(app, work)
        lose_answers(app, monkeypatch, "headrace:begun", 10_000)
        with pytest.raises(EndedError):
            await calls.work(fence)
        steps = await app.runtime.stores.jobs.load_steps(fence.job)
    assert (runs, list(steps)) == ([], [BEGUN])
    assert ends[0].startswith("headrace:begun of job")


async def test_a_call_that_was_given_up_is_not_begun() -> None:
    """Who waits for it has signed for it: an at-most-once job may be claimed again."""
    app, runs = quick_app(), []

    @app.task(delivery="at_most_once")
    async def work() -> None:
        runs.append(1)

    async with calls_of(app) as calls:
        fence = await claimed(app, work)
        await app.runtime.stores.jobs.save_step(
            fence.job, attempt=1, session=fence.session, name=BEGUN, value=Begun("", 0, 0.0, "watch", 1).text
        )
        await calls.work(fence)
        assert not runs
        assert ENDED not in await app.runtime.stores.jobs.load_steps(fence.job)


async def test_an_answer_that_was_paid_for_is_noted_before_the_handler_has_it() -> None:
    """A crash right after it is not the same crash again."""
    app = quick_app()
    seen: list[set[str]] = []

    @app.task
    async def ask(ctx: Context) -> None:
        meter = current_meter.get()
        assert meter is not None
        for _ in range(2):
            await meter.bill(Usage(calls=1, input_tokens=5))
            seen.append(set(await app.runtime.stores.jobs.load_steps(ctx.job_id)))

    async with calls_of(app) as calls:
        fence = await claimed(app, ask)
        await calls.work(fence)
        assert json.loads((await ended(app, fence))["usage"])["calls"] == 2
    assert seen == [{BEGUN, PAID}] * 2


async def test_a_lifespan_is_entered_before_anything_is_begun() -> None:
    """Neither its time nor its failure is any job's."""
    entered, fails = [], [True]

    @asynccontextmanager
    async def lifespan(_app: App) -> AsyncIterator[dict[str, int]]:
        entered.append(time.monotonic())
        if fails:
            raise ConnectionRefusedError(fails.pop())
        yield {"answer": 42}

    app = quick_app(lifespan=lifespan)

    @app.task
    async def work(ctx: Context) -> int:
        answer: int = ctx.resources["answer"]
        return answer

    with pytest.raises(ConnectionRefusedError):
        async with calls_of(app):
            pass
    async with calls_of(app) as calls:
        assert len(entered) == 2
        fence = await claimed(app, work)
        await calls.work(fence)
        assert (await ended(app, fence))["result"] == "42"
    assert len(entered) == 2


async def test_what_a_handler_returned_has_its_own_time_to_be_stored() -> None:
    """The end of the handler's time does not end the process while only storage is slow; a stop does."""
    app = quick_app()

    @app.task
    async def work(ctx: Context) -> None:
        while not ctx.cancelled:
            await asyncio.sleep(0.001)

    async with calls_of(app) as calls:
        fence = await claimed(app, work)
        working = asyncio.create_task(calls.work(fence))
        await wait_until(lambda: calls._running)
        assert calls._running is not None
        attempt = calls._running[1]
        assert not calls.overdue
        calls.ends_at = 0.0
        assert calls.overdue
        attempt.leaving = True
        assert not calls.overdue
        attempt.stop(StopReason.LEASE_LOST)
        assert calls.overdue
        await working


async def test_a_handler_whose_job_is_lost_is_stopped_whatever_goes_wrong(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody tells: the process looks by itself, about every second, and an error of a look is not its last one."""
    assert module.LOOK_SECONDS <= 1
    monkeypatch.setattr(module, "LOOK_SECONDS", 0.005)
    app, stopped = quick_app(), []

    @app.task
    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.append(1)

    async with calls_of(app) as calls:
        fence = await claimed(app, work)
        working = asyncio.create_task(calls.work(fence))
        await wait_until(lambda: calls._running)
        looks: list[Exception | None] = [StoreUnavailableError("away"), ValueError("a surprise"), None]

        async def look(_job: UUID, **_: Any) -> None:
            if (error := looks.pop(0)) is not None:
                raise error

        monkeypatch.setattr(app.runtime.stores.jobs, "running_job", look)
        await asyncio.wait_for(working, 10)
        assert (stopped, looks) == ([1], [])
        assert ENDED not in await app.runtime.stores.jobs.load_steps(fence.job)


def end_here(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note why a process would have ended: what called it goes on in no other way, and its loop's thread is over."""
    whys: list[str] = []

    def end(why: str) -> None:
        whys.append(why)
        if threading.current_thread().name != "headrace-farm":
            raise EndedError(why)

    monkeypatch.setattr(processes, "end_process", end)
    return whys


def end_loop(process: FarmProcess) -> None:
    """End the event loop of a process, as SystemExit out of a task does."""
    loop = process._loop
    assert loop is not None
    loop.call_soon_threadsafe(loop.stop)
    wait_until_sync(lambda: not loop.is_running())
    loop.close()


def test_an_app_that_cannot_be_opened_is_not_opened_at_once_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its process ends without having begun anything, and takes its time: the next one gets the same message."""
    monkeypatch.setattr(processes, "OPEN_AGAIN_SECONDS", 0.3)
    monkeypatch.setattr(processes, "open_link", lambda _settings: Link())
    ended_by = end_here(monkeypatch)

    @asynccontextmanager
    async def lifespan(_app: App) -> AsyncIterator[None]:
        raise ConnectionRefusedError("cache is away")
        yield

    process = FarmProcess(quick_app(lifespan=lifespan))
    began = time.monotonic()
    process.begin("w")
    with pytest.raises(EndedError):
        process.work(str(UUID(int=1)), 1, str(UUID(int=2)))
    assert time.monotonic() - began >= 0.3
    assert "cache is away" in ended_by[0]
    end_loop(process)


def test_a_call_that_fails_in_no_known_way_ends_its_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Celery would acknowledge its message, and nobody would ever end it."""
    monkeypatch.setattr(processes, "open_link", lambda _settings: Link())

    async def broken(_calls: FarmCalls, _fence: Fence) -> None:
        raise ValueError("a surprise")

    ended_by = end_here(monkeypatch)
    monkeypatch.setattr(FarmCalls, "work", broken)
    process = FarmProcess(quick_app())
    process.begin("w")
    with pytest.raises(EndedError, match="a surprise"):
        process.work(str(UUID(int=1)), 1, str(UUID(int=2)))
    process.end()
    # What ends the loop ends the process.
    end_loop(process)
    wait_until_sync(lambda: len(ended_by) == 2)
    assert ended_by[1] == "its event loop has ended"
