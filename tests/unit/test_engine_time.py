"""Time limits and cancels of running handlers, on the loop and in threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Backoff, Context
from headrace.engine import waiters
from headrace.model.errors import ConfigError, JobCancelledError, JobFailedError, NotFoundError, ResultTimeoutError
from headrace.model.ids import uuid7
from headrace.model.job import CancelAnswer, JobState
from tests.unit.engine_app import quick_app, until_final, until_state, view_of
from tests.waiting import wait_until

ONCE = Backoff.none()
TWICE = Backoff.fixed(0, max_attempts=2)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app with a worker: tasks may be added while it runs."""
    app = quick_app()
    app.task(name="seed")(lambda: None)
    async with app.worker(grace=0):
        yield app


async def test_a_coroutine_ends_at_its_timeout(app: App) -> None:
    """A handler that takes longer than its timeout is cancelled, and the attempt fails with what to do."""
    ended: list[str] = []

    @app.task(timeout=0.1, retry=TWICE)
    async def slow() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("cleaned up")

    job = await slow.enqueue()
    with pytest.raises(JobFailedError, match=r"timeout: ran longer than 0\.1 s; raise timeout= of task 'slow'"):
        await job.result(10)
    assert (ended, (await view_of(app, job)).failures) == (["cleaned up"] * 2, 2)


async def test_a_thread_is_told_of_its_timeout_and_left(app: App) -> None:
    """A sync handler cannot be stopped: at its timeout it sees `ctx.cancelled`, and its slot is free."""
    saw = threading.Event()

    @app.task(timeout=0.1, retry=ONCE)
    def slow(ctx: Context) -> None:
        while not ctx.cancelled:
            threading.Event().wait(0.005)
        saw.set()

    job = await slow.enqueue()
    with pytest.raises(JobFailedError, match="timeout"):
        await job.result(10)
    await wait_until(saw.is_set)


async def test_what_a_thread_returns_after_its_timeout_is_dropped(app: App) -> None:
    """The late result of a thread that was given up changes nothing."""
    gate, returned = threading.Event(), threading.Event()

    @app.task(timeout=0.1, retry=ONCE)
    def slow() -> str:
        gate.wait(10)
        returned.set()
        return "too late"

    job = await slow.enqueue()
    view = await until_final(app, job)
    gate.set()
    await wait_until(returned.is_set)
    assert (view.state, (await view_of(app, job)).result) == (JobState.FAILED, None)


async def test_waiting_in_the_queue_is_not_running(app: App) -> None:
    """The timeout counts from the start of the attempt: a job that waited longer than it runs all the same."""
    gate = asyncio.Event()

    @app.task(queue="single", timeout=0.3, retry=ONCE)
    async def work(hold: bool) -> str:
        if hold:
            await gate.wait()
        return "ran"

    blocker = app.task(name="blocker", queue="single", timeout="1m")(gate.wait)
    async with app.worker(queues={"single": 1}):
        first = await blocker.enqueue()
        await until_state(app, first, JobState.RUNNING)
        waiting = [await work.enqueue(False) for _ in range(3)]
        loop = asyncio.get_running_loop()
        loop.call_later(0.4, gate.set)
        assert [await job.result(10) for job in waiting] == ["ran"] * 3
        views = [await view_of(app, job) for job in waiting]
        assert all(view.finished_at and (view.finished_at - view.created_at).total_seconds() > 0.3 for view in views)


async def test_a_timeout_of_the_call_goes_before_that_of_the_task(app: App) -> None:
    """`options(timeout=)` counts for its job alone."""

    @app.task(timeout="1m", retry=ONCE)
    async def slow() -> None:
        await asyncio.Event().wait()

    with pytest.raises(JobFailedError, match=r"ran longer than 0\.1 s"):
        await (await slow.options(timeout=0.1).enqueue()).result(10)


async def test_without_a_timeout_the_settings_bound_the_run() -> None:
    """A task without `timeout=` may run `[worker] max_processing_time`."""
    app = quick_app(max_processing_time=timedelta(seconds=0.1))

    @app.task(retry=ONCE)
    async def slow() -> None:
        await asyncio.Event().wait()

    async with app.worker():
        with pytest.raises(JobFailedError, match=r"ran longer than 0\.1 s"):
            await (await slow.enqueue()).result(10)


async def test_progress_renews_the_stall_timer(app: App) -> None:
    """With a stall timeout a handler that reports may run on, on the loop and in a thread; a silent one fails."""

    @app.task(timeout="1m", stall_timeout=0.5, retry=ONCE)
    async def lively(ctx: Context) -> str:
        for _ in range(35):
            ctx.progress()
            await asyncio.sleep(0.02)
        return "done"

    @app.task(timeout="1m", stall_timeout=0.5, retry=ONCE)
    def lively_thread(ctx: Context) -> str:
        for _ in range(35):
            ctx.progress("one more")
            threading.Event().wait(0.02)
        return "done"

    @app.task(timeout="1m", stall_timeout=0.5, retry=ONCE)
    async def silent() -> None:
        await asyncio.Event().wait()

    jobs: list[Any] = [await lively.enqueue(), await lively_thread.enqueue()]
    still = await silent.enqueue()
    assert [await job.result(10) for job in jobs] == ["done", "done"]
    with pytest.raises(JobFailedError, match="timeout: no activity for"):
        await still.result(10)


async def test_progress_does_not_extend_the_timeout(app: App) -> None:
    """However lively, a handler ends at its timeout."""

    @app.task(timeout=0.3, stall_timeout=0.2, retry=ONCE)
    async def endless(ctx: Context) -> None:
        while True:
            ctx.progress()
            await asyncio.sleep(0.01)

    with pytest.raises(JobFailedError, match=r"ran longer than 0\.3 s"):
        await (await endless.enqueue()).result(10)


async def test_a_timeout_raised_by_the_handler_is_its_own(app: App) -> None:
    """A TimeoutError from inside a handler is an ordinary error, not the end of its time."""

    @app.task(timeout="1m", retry=ONCE)
    async def impatient() -> None:
        async with asyncio.timeout(0):
            await asyncio.Event().wait()

    view = await until_final(app, await impatient.enqueue())
    assert view.error is not None
    assert view.error.kind == "TimeoutError"


async def fail_in_a_group() -> None:
    """Let a member of a task group fail: before Python 3.13 the task looks cancelled from then on."""

    async def member() -> None:
        raise ValueError

    with contextlib.suppress(Exception):
        async with asyncio.TaskGroup() as group:
            group.create_task(member())


async def test_a_failed_task_group_does_not_hide_the_timeout(app: App) -> None:
    """After a task group that failed the handler runs into its time: that is a failure, not a release for ever."""

    @app.task(timeout=0.1, retry=TWICE)
    async def slow() -> None:
        await fail_in_a_group()
        await asyncio.Event().wait()

    job = await slow.enqueue()
    with pytest.raises(JobFailedError, match="timeout: ran longer"):
        await job.result(10)
    assert (await view_of(app, job)).failures == 2


async def test_a_failed_task_group_does_not_hide_what_was_cancelled_inside(app: App) -> None:
    """After a task group that failed the handler awaits what was cancelled: that is a failure too."""

    @app.task(retry=TWICE)
    async def impatient() -> None:
        await fail_in_a_group()
        answer = asyncio.get_running_loop().create_future()
        answer.cancel()
        await answer

    job = await impatient.enqueue()
    with pytest.raises(JobFailedError, match="CancelledError"):
        await job.result(10)
    assert (await view_of(app, job)).failures == 2


async def test_a_waiting_job_is_cancelled_at_once() -> None:
    """Scheduled and ready jobs are final as soon as they are cancelled, and never run."""
    app = quick_app()
    runs: list[int] = []
    task = app.task(name="run")(lambda: runs.append(1))
    async with app:
        jobs = [await task.enqueue(), await task.options(run_at="1h").enqueue()]
        assert [await job.cancel() for job in jobs] == [CancelAnswer.CANCELLED] * 2
        assert [await job.cancel() for job in jobs] == [CancelAnswer.ALREADY_FINAL] * 2
        for job in jobs:
            with pytest.raises(JobCancelledError):
                await job.result(10)
        async with app.worker():
            await (await app.task(name="other")(lambda: None).enqueue()).result(10)
    assert runs == []


async def test_a_running_coroutine_is_cancelled(app: App) -> None:
    """A running handler is cancelled with the next heartbeat; its job ends as cancelled and is not retried."""
    entered = asyncio.Event()

    @app.task
    async def long() -> None:
        entered.set()
        await asyncio.Event().wait()

    job = await long.enqueue()
    await entered.wait()
    assert await job.cancel() is CancelAnswer.REQUESTED
    with pytest.raises(JobCancelledError, match="cancelled while it ran"):
        await job.result(10)
    assert (await view_of(app, job)).attempt == 1


async def test_a_running_thread_is_told_and_left(app: App) -> None:
    """A running sync handler sees `ctx.cancelled`; its job is final at once, whenever the thread ends."""
    entered, saw = threading.Event(), threading.Event()

    @app.task
    def long(ctx: Context) -> str:
        entered.set()
        while not ctx.cancelled:
            threading.Event().wait(0.005)
        saw.set()
        return "ended by itself"

    job = await long.enqueue()
    await wait_until(entered.is_set)
    await job.cancel()
    with pytest.raises(JobCancelledError):
        await job.result(10)
    await wait_until(saw.is_set)


async def test_a_cancelled_job_that_would_be_retried_is_not(app: App) -> None:
    """A handler that turns its cancellation into an error still ends as cancelled."""
    entered = asyncio.Event()

    @app.task(retry=TWICE)
    async def stubborn() -> None:
        entered.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise RuntimeError("could not clean up") from None

    job = await stubborn.enqueue()
    await entered.wait()
    await job.cancel()
    view = await until_final(app, job)
    assert view.error is not None
    assert (view.state, view.attempt) == (JobState.CANCELLED, 1)
    assert "could not clean up" in view.error.message


async def test_waiting_for_a_result_may_time_out(app: App) -> None:
    """`result(timeout)` ends the wait, not the job."""
    gate = asyncio.Event()
    task = app.task(name="gated")(gate.wait)
    job = await task.enqueue()
    with pytest.raises(ResultTimeoutError, match="it goes on") as caught:
        await job.result("50ms")
    assert isinstance(caught.value, TimeoutError)
    gate.set()
    assert await job.result(10) is True


async def test_many_may_wait_for_one_job(app: App) -> None:
    """Every waiter of a job gets its result, also when another of them gives up."""
    gate = asyncio.Event()
    job = await app.task(name="gated")(gate.wait).enqueue()
    waiting = [asyncio.ensure_future(job.result(10)) for _ in range(5)]
    impatient = asyncio.ensure_future(job.result(0.02))
    with pytest.raises(ResultTimeoutError):
        await impatient
    gate.set()
    assert await asyncio.gather(*waiting) == [True] * 5


async def test_a_job_that_does_not_exist_is_not_found(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Handles on unknown ids raise NotFoundError instead of waiting for ever."""
    monkeypatch.setattr(waiters, "EXISTENCE_CHECK_SECONDS", 0.05)
    ghost = app.job(uuid7())
    for ask in (ghost.status, ghost.cancel, ghost.result):
        with pytest.raises(NotFoundError, match=str(ghost.id)):
            await asyncio.wait_for(ask(), 10)


async def test_closing_the_app_ends_the_wait_for_a_result() -> None:
    """Whoever waits for a job when the app closes is told so, and is not taken for cancelled."""
    app = quick_app()
    task = app.task(name="never")(lambda: None)
    async with app:
        job = await task.enqueue()
        waiting = asyncio.ensure_future(job.result())
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    with pytest.raises(ConfigError, match="closed"):
        await asyncio.wait_for(waiting, 10)
