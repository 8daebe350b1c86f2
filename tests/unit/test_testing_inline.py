"""`inline`: who enqueues waits until the job has run, and gets its error."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from headrace import App, Backoff, Context, Fail, JobFailedError, ResultTimeoutError
from headrace.model.job import JobState
from headrace.testing import drain, in_memory, inline
from tests.effort import bounded_work


@pytest.fixture
def app() -> Iterator[App]:
    """An app in memory."""
    with in_memory() as app:
        yield app


async def test_a_job_has_run_when_enqueue_returns(app: App) -> None:
    """Also one that enqueues others, one that is delayed, one that is tried again, and one in a thread."""

    @app.task(retry=Backoff.fixed("1h", max_attempts=2))
    async def double(number: int, ctx: Context) -> int:
        if ctx.attempt == 1:
            raise ValueError("not yet")
        return 2 * number

    @app.task
    async def twice(number: int) -> int:
        inner = await double.enqueue(number)
        assert await inner.status() is JobState.SUCCEEDED
        return 2 * await inner.result()

    @app.task
    def plainly(number: int) -> int:
        return number + 1

    async with inline(app):
        handle = await twice.options(run_at="3d").enqueue(4)
        assert await handle.status() is JobState.SUCCEEDED
        assert await handle.result() == 16
        many = await plainly.enqueue_many([1, 2])
        assert [await one.status() for one in many] == [JobState.SUCCEEDED] * 2


async def test_many_jobs_are_waited_for_as_one(app: App) -> None:
    """None is looked for among all the others."""

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    async with inline(app):
        with bounded_work(9):
            assert len(await double.enqueue_many(range(15_000))) == 15_000


async def test_errors_are_raised_where_the_job_is_enqueued(app: App) -> None:
    """After all its attempts, with what the handler raised; nested ones go through the job that enqueued them."""

    @app.task(retry=Backoff.fixed("1h", max_attempts=2))
    async def fails(word: str) -> None:
        raise ValueError(word)

    @app.task(retry=Backoff.none())
    async def outer() -> None:
        await fails.enqueue("inner")

    async with inline(app):
        with pytest.raises(JobFailedError, match=r"\(fails\) failed after 2 attempts: ValueError: outer"):
            await fails.enqueue("outer")
        with pytest.raises(JobFailedError, match=r"\(outer\) failed after 1 attempt: job_failed: .*ValueError: inner"):
            await outer.enqueue()
        with pytest.raises(JobFailedError, match="second"):
            await fails.enqueue_many(["second", "third"])


async def test_a_batch_has_closed_when_submit_returns(app: App) -> None:
    """With errors as its items, and its callback done."""
    sums: list[int] = []

    @app.task
    async def positive(number: int) -> int | Fail:
        return number if number > 0 else Fail("not positive")

    @app.task
    async def total(batch_id: str) -> None:
        sums.append(sum([item.result or 0 async for item in app.batch(batch_id).results()]))

    async with inline(app):
        batch = await app.submit(positive, [1, -1, 2], on_close=total)
        assert sums == [3]
        progress = await batch.progress()
        assert (progress.succeeded, progress.failed) == (2, 1)
        assert await (await app.submit(positive, [], on_close=total)).wait("1s")
        assert sums == [3, 0]


async def test_what_waits_for_a_signal_is_left_as_it_waits(app: App) -> None:
    """Its timeout does not pass; the signal makes it go on."""

    @app.task
    async def ask() -> str:
        return str(await app.wait_for("answer", timeout="1m"))

    async with inline(app):
        handle = await ask.enqueue()
        assert await handle.status() is JobState.PARKED
        batch = await app.submit(ask, [])
        assert (await batch.progress()).total == 0
        await app.signal("answer", "yes")
        assert await handle.result("5s") == "yes"


async def test_a_job_that_does_not_end_is_told(app: App) -> None:
    """Jobs that wait for each other in a queue for one, too."""
    app.queue("narrow", concurrency=1)

    @app.task(queue="narrow", retry=Backoff.none())
    async def nested(depth: int) -> None:
        if depth:
            await nested.enqueue(depth - 1)

    async with inline(app, timeout="300ms"):
        await nested.enqueue(0)
        with pytest.raises((ResultTimeoutError, JobFailedError), match="there is still work: nested"):
            await nested.enqueue(1)


async def test_outside_of_the_block_nothing_is_inline(app: App) -> None:
    """Jobs are enqueued as ever, before and after, also where the app stays open."""

    @app.task
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return 2 * number

    async with app:
        assert await (await double.enqueue(1)).status() is JobState.READY
        async with inline(app):
            assert await (await double.enqueue(2)).status() is JobState.SUCCEEDED
        assert await (await double.enqueue(3)).status() is JobState.READY
        assert [job.result for job in await drain(app)] == [6]
