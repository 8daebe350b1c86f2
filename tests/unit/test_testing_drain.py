"""`in_memory` and `drain`: an app worked off in a test, while time passes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta

import pytest

from headrace import App, Backoff, ConfigError, Context, InvalidInputError, ResultTimeoutError, Snooze, chain
from headrace.model.job import JobState, JobView
from headrace.settings import LimitsSettings, QueueSettings, Settings, WorkerSettings
from headrace.testing import drain, in_memory

HOUR = timedelta(hours=1)


@pytest.fixture
def app() -> Iterator[App]:
    """An app whose settings lead nowhere, in memory."""
    nowhere = Settings(
        queue=QueueSettings(type="postgres", url="postgresql://127.0.0.1:9/nowhere"),
        limits=LimitsSettings("redis://127.0.0.1:9"),
        worker=WorkerSettings(executor="celery"),
    )
    with in_memory(App(settings=nowhere)) as app:
        yield app


def results(jobs: list[JobView]) -> list[object]:
    """Return what jobs ended with."""
    return [job.result if job.state is JobState.SUCCEEDED else job.error and job.error.message for job in jobs]


async def test_nobody_waits_for_backoffs_and_delays_and_the_order_is_that_of_time(app: App) -> None:
    """Retries run, jobs run when it is their turn, and what lies behind the horizon stays for another drain."""

    @app.task(retry=Backoff.fixed("10m", max_attempts=3))
    async def stubborn(ctx: Context) -> int:
        if ctx.attempt < 3:
            raise ValueError("not yet")
        return ctx.attempt

    @app.task
    async def say(word: str) -> str:
        return word

    async with app:
        await stubborn.enqueue()
        await say.options(run_at="15m").enqueue("between")
        await say.options(run_at="25m").enqueue("after")
        await say.options(run_at="2h").enqueue("late")
        await say.enqueue("first")
    ended = await drain(app)
    assert results(ended) == ["first", "between", 3, "after"]
    assert results(await drain(app, horizon=HOUR)) == []  # the time that has passed counts: 95 minutes are left
    assert results(await drain(app, horizon="2h")) == ["late"]


async def test_what_a_drain_sets_going_is_worked_too(app: App) -> None:
    """Jobs that jobs enqueue, callbacks of batches, and runs of workflows; a job that failed is an end like others."""

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    @app.task
    async def split(number: int) -> None:
        for part in range(number):
            await double.enqueue(part)

    @app.task(retry=Backoff.none())
    async def total(batch_id: str) -> int:
        raise ValueError(f"not of {batch_id}")

    app.workflow("twice", chain(double.s(), double.s()))
    async with app:
        await split.enqueue(2)
        batch = await app.submit(double, [10, 20], on_close=total)
        run = await app.start("twice", 5)
        ended = await drain(app)
        assert (await batch.progress()).succeeded == 2
        assert await run.result("1s") == 20
    # A short run is worked by one job, so its nodes are none.
    assert sorted(job.task for job in ended) == [*["double"] * 4, "headrace.run", "split", "total"]
    assert results([job for job in ended if job.task == "total"]) == [f"not of {batch.id}"]


async def test_what_cannot_end_is_left_alone(app: App) -> None:
    """Jobs that wait for a signal, of a paused queue, of a task that nobody has, and those that snooze for ever."""

    @app.task
    async def ask() -> str:
        return str(await app.wait_for("answer"))

    @app.task(queue="shut")
    async def shut() -> None: ...

    @app.task
    async def sleepy() -> Snooze:
        return Snooze("20m")

    other = App()

    @other.task(name="gone")
    async def gone() -> None: ...

    gone.app = app
    async with app:
        await app.pause("shut")
        handles = [await task.enqueue() for task in (ask, shut, sleepy, gone)]
        assert await drain(app) == []
        states = [await handle.status() for handle in handles]
        assert states == [JobState.PARKED, JobState.READY, JobState.SCHEDULED, JobState.SCHEDULED]
        await app.signal("answer", "yes")
        assert results(await drain(app, horizon="0s")) == ["yes"]


async def test_what_does_not_end_is_named(app: App) -> None:
    """After the timeout the error says which jobs go on; their worker stops."""

    @app.task
    async def endless() -> None:
        await asyncio.Event().wait()

    async with app:
        await endless.enqueue()
    with pytest.raises(ResultTimeoutError, match=r"after 200ms there is still work: endless \(running\)"):
        await drain(app, timeout="200ms")
    with pytest.raises(InvalidInputError, match="horizon"):
        await drain(app, horizon="soon")


def test_a_store_lasts_as_long_as_its_block_and_over_event_loops(app: App) -> None:
    """What one loop enqueued another works; after the block the app is as it was, and the next block finds nothing."""

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async def enqueue() -> None:
        async with app:
            await double.enqueue(4)

    asyncio.run(enqueue())
    assert results(asyncio.run(drain(app))) == [8]
    other = App()
    before = other.settings
    with in_memory(other):
        assert other.settings.queue.type == "memory"
    assert other.settings is before
    with in_memory(other):
        assert asyncio.run(drain_one_queue(other)) == []


async def drain_one_queue(app: App) -> list[JobView]:
    """Give an app a task, and drain it."""
    app.task(name="nothing")(lambda: None)
    return await drain(app)


async def test_only_an_app_in_memory_can_be_looked_into(app: App) -> None:
    """Everybody else is told what to use; an app is not put into memory while it is open, nor twice."""
    with pytest.raises(ConfigError, match="headrace_app"):
        await drain(App("memory://"))
    async with (opened := App("memory://")):
        with pytest.raises(ConfigError, match="open already"), in_memory(opened):
            pass
    with pytest.raises(ConfigError, match="in memory already"), in_memory(app):
        pass
