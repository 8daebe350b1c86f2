"""Checkpoints: `ctx.step` runs once per job, whatever happens to its attempts."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest

from headrace import App, Backoff, Context, Retry, Snooze
from headrace.model.errors import InvalidInputError, JobFailedError
from tests.unit.engine_app import crash_with, quick_app

AT_ONCE = Backoff.fixed(0, max_attempts=4)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app with a worker: tasks may be added while it runs."""
    app = quick_app()
    app.task(name="seed")(lambda: None)
    async with app.worker(grace=0):
        yield app


async def test_a_step_runs_once_over_all_attempts(app: App) -> None:
    """A stored step is not run again after an error, a retry or a snooze: later attempts get its value."""
    runs: list[str] = []

    async def fetch() -> dict[str, list[int]]:
        runs.append("fetch")
        return {"pages": [1, 2]}

    @app.task(retry=AT_ONCE)
    async def work(ctx: Context) -> Any:
        pages = await ctx.step("fetch", fetch)
        count = await ctx.step("count", lambda: runs.append("count") or len(pages["pages"]))
        match ctx.attempt:
            case 1:
                raise RuntimeError("after both")
            case 2:
                return Retry(delay=0)
            case 3:
                return Snooze(0)
        return [pages, count]

    assert await (await work.enqueue()).result(10) == [{"pages": [1, 2]}, 2]
    assert runs == ["fetch", "count"]


async def test_a_step_survives_the_crash_of_its_worker() -> None:
    """What a dead worker stored is there for the next one."""
    app = quick_app()
    runs: list[int] = []

    @app.task
    async def work(ctx: Context) -> int:
        await ctx.step("one", lambda: runs.append(ctx.attempt))
        return ctx.attempt

    async with app:
        job = await work.enqueue()
        claimed = await crash_with(app, job)
        assert claimed.attempt == 1
        async with app.worker():
            assert await job.result(10) == 2
        assert await app.runtime.stores.jobs.load_steps(job.id) == {"one": "null"}
    assert runs == [2]


async def test_a_step_that_fails_is_run_again(app: App) -> None:
    """Nothing is stored for a step that raised; the next attempt runs it again."""
    runs: list[int] = []

    @app.task(retry=AT_ONCE)
    async def work(ctx: Context) -> Any:
        def flaky() -> str:
            runs.append(ctx.attempt)
            if ctx.attempt == 1:
                raise OSError("line busy")
            return "through"

        return await ctx.step("call", flaky)

    assert await (await work.enqueue()).result(10) == "through"
    assert runs == [1, 2]


async def test_steps_belong_to_their_job(app: App) -> None:
    """Two jobs of a task have steps of their own."""

    @app.task
    async def work(number: int, ctx: Context) -> Any:
        return await ctx.step("double", lambda: 2 * number)

    assert [await (await work.enqueue(number)).result(10) for number in (1, 2)] == [2, 4]


@pytest.mark.parametrize(
    ("name", "value", "named"),
    [
        ("Not A Name", 1, "invalid_name: step"),
        ("", 1, "invalid_name: step"),
        ("fine", object(), "invalid_input: step fine"),
        ("fine", float("nan"), "invalid_input: step fine"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
async def test_a_wrong_step_is_named(app: App, name: str, value: Any, named: str) -> None:
    """A bad name, or a value that is not JSON, fails the job at once and says which step it was."""

    @app.task(retry=AT_ONCE)
    async def work(ctx: Context) -> None:
        await ctx.step(name, lambda: value)

    with pytest.raises(JobFailedError, match=f"after 1 attempt: {named}"):
        await (await work.enqueue()).result(10)


async def test_a_step_name_is_used_once_per_attempt(app: App) -> None:
    """A second step of the same name would silently get the first one's value: it is refused."""

    @app.task
    async def work(ctx: Context) -> None:
        for number in range(2):
            await ctx.step("same", lambda number=number: number)  # type: ignore[misc]

    with pytest.raises(JobFailedError, match="number the names of a loop"):
        await (await work.enqueue()).result(10)


async def test_a_step_of_a_sync_handler_runs_in_a_thread(app: App) -> None:
    """`app.sync(ctx.step(…))` works in sync handlers, and what it runs does not block the event loop."""
    loop_thread = threading.get_ident()
    threads: list[int] = []

    @app.task(retry=AT_ONCE)
    def work(ctx: Context) -> Any:
        value = app.sync(ctx.step("slow", lambda: threads.append(threading.get_ident()) or "stored"))
        if ctx.attempt == 1:
            raise RuntimeError("after the step")
        return value

    assert await (await work.enqueue()).result(10) == "stored"
    assert len(threads) == 1
    assert threads[0] != loop_thread


async def test_a_step_counts_as_activity(app: App) -> None:
    """Each stored step renews the stall timer."""

    @app.task(timeout="1m", stall_timeout=0.3, retry=Backoff.none())
    async def work(ctx: Context) -> str:
        for number in range(5):
            await ctx.step(f"part-{number}", lambda: asyncio.sleep(0.1))
        return "done"

    assert await (await work.enqueue()).result(10) == "done"


async def test_a_plain_call_may_go_without_a_context() -> None:
    """Steps need a running attempt: in a plain call the handler gets what the caller passes."""
    app = quick_app()

    @app.task
    async def work(number: int, ctx: Context | None = None) -> int:
        return number if ctx is None else -1

    assert await work(3) == 3
    with pytest.raises(InvalidInputError):
        async with app:
            await work.enqueue(3, None)
