"""Leases and fences: a worker that cannot renew stops in time, and a late one changes nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace import App, Context
from headrace.clock import SystemClock
from headrace.engine import worker as worker_module
from headrace.engine.loops import heartbeat
from headrace.engine.loops.heartbeat import Heartbeat, HeartbeatThread, Lease
from headrace.model.errors import FenceLostError, StoreUnavailableError
from headrace.model.job import JobState
from headrace.model.session import Renewal
from headrace.ports.session_store import SessionStore
from headrace.testing.clock import FakeClock
from tests.unit.engine_app import MILLISECONDS, QUICK, quick_app, shift_of, view_of
from tests.waiting import wait_until, wait_until_sync

SHORT = replace(QUICK, queue=replace(QUICK.queue, visibility_timeout=300 * MILLISECONDS))


class Renewals:
    """Stands for the session store of a heartbeat: it answers as the test says."""

    def __init__(self, answer: Callable[[], Renewal]) -> None:
        self.answer = answer
        self.stats: list[dict[str, Any]] = []

    async def renew_session(self, session: UUID, *, lease: timedelta, stats: dict[str, Any]) -> Renewal:
        """Answer a renewal."""
        self.stats.append(stats)
        return self.answer()


class Watched:
    """A lease that notes what its heartbeat reports."""

    def __init__(self, *, length: timedelta = 12 * 1000 * MILLISECONDS, interval: timedelta = MILLISECONDS) -> None:
        self.lost = threading.Event()
        self.cancelled: list[UUID] = []
        self.lease = Lease(
            uuid4(), length, interval, stats=lambda: {"beats": 1}, on_cancel=self.cancelled.extend,
            on_lost=self.lost.set,
        )  # fmt: skip


def alive() -> Renewal:
    """Answer that the session lives."""
    return Renewal(alive=True)


def away() -> Renewal:
    """Answer nothing."""
    raise StoreUnavailableError("away")


async def test_the_deadline_counts_from_when_the_last_renewal_was_sent() -> None:
    """Handlers must stop 2 s before the lease ends, reckoned from the sending of the last renewal that succeeded."""
    clock, watched = FakeClock(), Watched()
    beat = Heartbeat(watched.lease, clock, renewed_at=clock.monotonic())
    assert beat.remaining() == 10
    clock.advance(timedelta(seconds=4))
    assert (beat.remaining(), beat.until_lease_end()) == (6, 8)

    def slow() -> Renewal:
        clock.advance(timedelta(seconds=3))
        return alive()

    store = Renewals(slow)
    running = asyncio.ensure_future(beat.run(store))  # type: ignore[arg-type]
    await wait_until(lambda: store.stats)
    beat.stop()
    await running
    assert beat.remaining() == pytest.approx(10 - 3)
    assert (store.stats[0], watched.lost.is_set()) == ({"beats": 1}, False)


async def test_a_heartbeat_that_cannot_renew_reports_before_the_lease_ends() -> None:
    """A store that stays away makes the heartbeat report the loss while the lease is still running."""
    clock, watched = FakeClock(), Watched()
    beat = Heartbeat(watched.lease, clock, renewed_at=clock.monotonic())

    def waste() -> Renewal:
        clock.advance(timedelta(seconds=1))
        return away()

    await asyncio.wait_for(beat.run(Renewals(waste)), 10)  # type: ignore[arg-type]
    assert watched.lost.is_set()
    assert 0 < beat.until_lease_end() <= 2


async def test_a_renewal_that_hangs_is_tried_again_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A link that died silently costs half of what is left, and the next try saves the lease."""
    watched = Watched(length=600 * MILLISECONDS)
    clock = SystemClock()
    beat = Heartbeat(watched.lease, clock, renewed_at=clock.monotonic())
    store = Renewals(alive)
    hung = 0

    async def renew(session: UUID, *, lease: timedelta, stats: dict[str, Any]) -> Renewal:
        nonlocal hung
        hung += 1
        if hung == 1:
            await asyncio.Event().wait()
        beat.stop()
        return alive()

    store.renew_session = renew  # type: ignore[method-assign]
    monkeypatch.setattr(heartbeat, "SHORTEST_TRY", 0.05)
    await asyncio.wait_for(beat.run(store), 10)  # type: ignore[arg-type]
    assert (hung, watched.lost.is_set()) == (2, False)


async def test_any_surprise_in_a_renewal_is_survived_until_the_deadline() -> None:
    """An error nobody expected does not end the heartbeat; when it lasts, the loss is reported in time."""
    watched = Watched()
    answers: list[Any] = [RuntimeError("a bug"), OSError("broken pipe"), None]

    def stumble() -> Renewal:
        answer = answers.pop(0)
        if answer is None:
            return Renewal(alive=False)
        raise answer

    beat = Heartbeat(watched.lease, FakeClock(), renewed_at=0.0)
    await asyncio.wait_for(beat.run(Renewals(stumble)), 10)  # type: ignore[arg-type]
    assert (answers, watched.lost.is_set()) == ([], True)


async def test_a_session_that_is_gone_is_reported_at_once() -> None:
    """A store that answers "no longer alive" ends the heartbeat: an ended lease is never renewed."""
    watched = Watched()
    beat = Heartbeat(watched.lease, FakeClock(), renewed_at=0.0)
    store = Renewals(lambda: Renewal(alive=False))
    await asyncio.wait_for(beat.run(store), 10)  # type: ignore[arg-type]
    assert (len(store.stats), watched.lost.is_set()) == (1, True)


async def test_a_renewal_brings_the_jobs_to_cancel() -> None:
    """The ids of jobs whose cancel was asked for arrive with the answer to a heartbeat."""
    watched, job_id = Watched(), uuid4()
    beat = Heartbeat(watched.lease, FakeClock(), renewed_at=0.0)
    store = Renewals(lambda: Renewal(alive=True, cancel_jobs=(job_id,)))
    running = asyncio.ensure_future(beat.run(store))  # type: ignore[arg-type]
    await wait_until(lambda: watched.cancelled)
    beat.stop()
    await running
    assert watched.cancelled[0] == job_id


def hosted(watched: Watched, sessions: Any) -> HeartbeatThread:
    """Return a heartbeat in a thread whose store is opened by `sessions`, on a real clock."""
    clock = SystemClock()
    return HeartbeatThread(Heartbeat(watched.lease, clock, renewed_at=clock.monotonic()), sessions)


@asynccontextmanager
async def opened(store: Renewals) -> AsyncIterator[SessionStore]:
    """Open a store."""
    yield store  # type: ignore[misc]


async def test_the_thread_renews_while_the_loop_is_blocked() -> None:
    """A handler that blocks the event loop does not keep the heartbeat from renewing."""
    watched, store = Watched(), Renewals(alive)
    thread = hosted(watched, lambda: opened(store))
    thread.start()
    wait_until_sync(lambda: len(store.stats) > 5)
    await thread.stop()
    assert not watched.lost.is_set()


async def test_the_thread_connects_again_until_it_succeeds() -> None:
    """A first connection that fails, in any way, is tried again."""
    watched, store = Watched(length=2000 * MILLISECONDS), Renewals(alive)
    faults: list[Exception] = [ValueError("a bug"), StoreUnavailableError("away"), OSError("refused")]

    @asynccontextmanager
    async def open_late() -> AsyncIterator[SessionStore]:
        if faults:
            raise faults.pop()
        yield store  # type: ignore[misc]

    thread = hosted(watched, open_late)
    thread.start()
    await wait_until(lambda: store.stats)
    await thread.stop()
    assert not watched.lost.is_set()


@pytest.mark.parametrize("hangs", [False, True])
async def test_the_thread_exits_the_process_when_handlers_do_not_stop(
    monkeypatch: pytest.MonkeyPatch, hangs: bool
) -> None:
    """Without a connection the loss is reported in time; handlers that go on past the lease end the process."""
    exits: list[int] = []
    monkeypatch.setattr(heartbeat.os, "_exit", exits.append)
    watched = Watched(length=120 * MILLISECONDS)

    @asynccontextmanager
    async def never() -> AsyncIterator[SessionStore]:
        if hangs:
            await asyncio.Event().wait()
        raise StoreUnavailableError("away")
        yield

    thread = hosted(watched, never)
    thread.start()
    await wait_until(watched.lost.is_set)
    await wait_until(lambda: exits)
    assert exits == [heartbeat.EXIT_LEASE_LOST]


async def test_the_process_lives_when_its_handlers_stop_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loss after which every handler has stopped does not end the process."""
    exits: list[int] = []
    monkeypatch.setattr(heartbeat.os, "_exit", exits.append)
    watched = Watched(length=300 * MILLISECONDS)
    thread = hosted(watched, lambda: opened(Renewals(lambda: Renewal(alive=False))))
    thread.start()
    await wait_until(watched.lost.is_set)
    thread.handlers_stopped.set()
    await wait_until(lambda: not thread._thread.is_alive())
    assert exits == []


async def test_a_thread_that_is_stopped_at_once_ends() -> None:
    """Start and stop in one breath, fifty times: no thread stays."""
    for _ in range(50):
        watched = Watched()
        thread = hosted(watched, lambda: opened(Renewals(alive)))
        thread.start()
        await thread.stop()
        assert not watched.lost.is_set()
    assert "headrace-heartbeat" not in [thread.name for thread in threading.enumerate()]


def lose_renewals(app: App, monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Let every renewal of the app's store fail from now on; return how to heal it."""
    sessions = app.runtime.stores.sessions
    renew = sessions.renew_session

    async def failing(session: UUID, *, lease: timedelta, stats: dict[str, Any]) -> Renewal:
        raise StoreUnavailableError("away")

    monkeypatch.setattr(sessions, "renew_session", failing)
    return lambda: monkeypatch.setattr(sessions, "renew_session", renew)


async def test_handlers_are_stopped_before_the_lease_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that cannot renew stops its handlers in time, and goes on under a new session once it can."""
    monkeypatch.setattr(worker_module, "RESTART_SECONDS", 0.01)
    app = quick_app(settings=SHORT)
    stopped_alive: list[bool] = []
    entered: list[int] = []

    @app.task
    async def long(ctx: Context) -> str:
        entered.append(ctx.attempt)
        if ctx.attempt > 1:
            return "second run"
        try:
            await asyncio.Event().wait()
        finally:
            [session] = await app.runtime.stores.inspect.list_sessions()
            stopped_alive.append(session.alive)
        raise AssertionError("unreachable")

    async with app, app.worker() as worker:
        job = await long.enqueue()
        await wait_until(lambda: entered)
        heal = lose_renewals(app, monkeypatch)
        await wait_until(lambda: stopped_alive)
        heal()
        assert await job.result(10) == "second run"
        view = await view_of(app, job)
    assert (stopped_alive, view.failures, view.crashes) == ([True], 0, 1)
    assert worker.telemetry.value("headrace.sessions.lost") == 1


async def test_a_lease_lost_while_stopping_begins_no_new_session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that loses its lease during its shutdown ends, instead of beginning anew behind its owner's back."""
    app = quick_app(settings=SHORT)
    started = asyncio.Event()

    @app.task
    async def long() -> None:
        started.set()
        await asyncio.Event().wait()

    async with app:
        async with app.worker(grace=20) as worker:
            await long.enqueue()
            await started.wait()
            lose_renewals(app, monkeypatch)
        sessions = await app.runtime.stores.inspect.list_sessions()
    assert (len(sessions), worker.session) == (1, None)
    assert worker.telemetry.value("headrace.sessions.lost") == 1


async def test_stopping_in_the_middle_of_a_lost_lease_ends_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that is stopped while it cannot begin a new session leaves nothing running."""
    app = quick_app(settings=SHORT)
    app.task(name="one")(lambda: 1)
    before = asyncio.all_tasks()
    async with app, app.worker() as worker:
        lose_renewals(app, monkeypatch)

        async def refuse(session: Any) -> None:
            raise StoreUnavailableError("away")

        monkeypatch.setattr(app.runtime.stores.sessions, "register_session", refuse)
        await wait_until(lambda: worker.session is None)
    await wait_until(lambda: asyncio.all_tasks() == before)


async def test_a_late_ending_is_refused_and_counted() -> None:
    """A worker whose session ended without its knowledge has its result refused; the job runs again elsewhere."""
    app = quick_app()
    gate, entered = asyncio.Event(), asyncio.Event()

    @app.task
    async def slow(ctx: Context) -> int:
        entered.set()
        if ctx.attempt == 1:
            await gate.wait()
        return ctx.attempt

    async with app, app.worker() as worker:
        job = await slow.enqueue()
        await entered.wait()
        shift = shift_of(worker)
        stores = app.runtime.stores
        # The rescue and the second run happen between two heartbeats of the first session.
        await stores.sessions.expire_sessions([shift.id])
        await stores.jobs.rescue_jobs(limit=10)
        gate.set()
        assert await job.result(10) == 2
        await wait_until(lambda: worker.telemetry.value("headrace.jobs.refused"))
        view = await view_of(app, job)
        records = await stores.inspect.get_attempts(job.id)
    assert (view.state, view.attempt, view.crashes) == (JobState.SUCCEEDED, 2, 1)
    assert [record.outcome for record in records] == ["crashed", "succeeded"]


async def test_a_step_of_a_late_attempt_is_refused() -> None:
    """A checkpoint of an attempt that lost its job stores nothing and raises FenceLostError in the handler."""
    app = quick_app()
    entered, gate = asyncio.Event(), asyncio.Event()
    caught: list[Exception] = []

    @app.task
    async def work(ctx: Context) -> Any:
        if ctx.attempt == 1:
            entered.set()
            await gate.wait()
        try:
            return await ctx.step("pay", lambda: f"attempt {ctx.attempt}")
        except FenceLostError as error:
            caught.append(error)
            raise

    async with app, app.worker() as worker:
        job = await work.enqueue()
        await entered.wait()
        stores = app.runtime.stores
        await stores.sessions.expire_sessions([shift_of(worker).id])
        await stores.jobs.rescue_jobs(limit=10)
        gate.set()
        assert await job.result(10) == "attempt 2"
        assert len(caught) == 1
        assert await stores.jobs.load_steps(job.id) == {"pay": '"attempt 2"'}


async def test_two_attempts_of_a_job_may_overlap_in_one_worker() -> None:
    """A sweep may end an attempt that its worker still runs; the next one runs beside it, and both slots come free."""
    app = quick_app()
    gate, meeting = asyncio.Event(), asyncio.Barrier(2)
    entered: list[int] = []

    @app.task
    async def work(ctx: Context) -> int:
        entered.append(ctx.attempt)
        if ctx.attempt == 1:
            await gate.wait()
        return ctx.attempt

    meet = app.task(name="meet")(meeting.wait)
    async with app, app.worker(concurrency=2, grace=5) as worker:
        job = await work.options(timeout=0.1).enqueue()
        stores = app.runtime.stores
        await wait_until(lambda: entered == [1])
        shift_of(worker)._attempts[job.id, 1].runner.cancel = lambda: False
        term = await wait_until(lambda: worker._leadership.term)

        async def ended() -> bool:
            return bool((await stores.jobs.fail_overdue_jobs(grace=timedelta(), limit=10, term=term)).released)

        await wait_until(ended)
        assert await job.result(10) == 2
        gate.set()
        await wait_until(lambda: worker.quiet)
        assert shift_of(worker).running == 0
        # Two that need both slots at once.
        pair = [await meet.enqueue() for _ in range(2)]
        assert sorted([await one.result(10) for one in pair]) == [0, 1]
