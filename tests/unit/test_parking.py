"""A handler that leaves its slot: it runs again from the top, and nothing is spent."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from headrace import App, Backoff, Breaker, Context
from headrace.model.job import JobState
from headrace.model.parking import ParkRequested

SOON = timedelta(milliseconds=10)


def parked_once(runs: list[int], attempt: int) -> None:
    """Leave the slot in the first run."""
    runs.append(attempt)
    if len(runs) == 1:
        raise ParkRequested(SOON, "its turn")


@pytest.mark.parametrize("kind", ["plain", "gathered", "in a task group", "in a thread"])
async def test_a_parked_job_runs_again_and_spends_no_attempt(kind: str) -> None:
    """With one attempt allowed it still succeeds, however the wait reached the engine."""
    app, runs = App("memory://"), []

    @app.task(retry=Backoff.exponential(max_attempts=1))
    async def plain(number: int, ctx: Context) -> int:
        parked_once(runs, ctx.attempt)
        return number

    @app.task(batch_size=2, max_wait="1ms", name="gathered", retry=Backoff.exponential(max_attempts=1))
    async def gathered(numbers: list[int]) -> list[int]:
        parked_once(runs, 0)
        return numbers

    @app.task(name="grouped", retry=Backoff.exponential(max_attempts=1))
    async def grouped(number: int) -> int:
        async def wait() -> None:
            parked_once(runs, 0)

        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            group.create_task(asyncio.sleep(0))
        return number

    @app.task(name="threaded", retry=Backoff.exponential(max_attempts=1))
    def threaded(number: int) -> int:
        parked_once(runs, 0)
        return number

    task = {"plain": plain, "gathered": gathered, "in a task group": grouped, "in a thread": threaded}[kind]
    async with app.worker():
        handle = await task.enqueue(7)
        assert await handle.result(timeout=20) == 7
    assert len(runs) == 2


async def test_a_parked_job_has_no_failure_and_its_breaker_hears_nothing() -> None:
    """Waiting says nothing of what stands behind the breaker, and is no error of the job."""
    app, runs = App("memory://"), []

    @app.task(breaker=Breaker("api", failures=1, cooldown="1h"), retry=Backoff.exponential(max_attempts=1))
    async def call(ctx: Context) -> int:
        parked_once(runs, ctx.attempt)
        return ctx.attempt

    async with app.worker():
        handle = await call.enqueue()
        assert await handle.result(timeout=20) == 2
        view = await app.runtime.stores.inspect.get_job(handle.id)
    assert view is not None
    assert (view.state, view.failures, view.error) == (JobState.SUCCEEDED, 0, None)


async def test_a_fault_beside_the_wait_is_the_ending() -> None:
    """In a task group where one child waits and another fails, the failure counts."""
    app = App("memory://")

    @app.task(retry=Backoff.exponential(max_attempts=1))
    async def both() -> None:
        async def wait() -> None:
            raise ParkRequested(SOON, "its turn")

        async def fail() -> None:
            raise ValueError("broken")

        async with asyncio.TaskGroup() as group:
            group.create_task(wait())
            group.create_task(fail())

    async with app.worker():
        handle = await both.enqueue()
        with pytest.raises(Exception, match="unhandled errors"):
            await handle.result(timeout=20)
