"""Batches while they run and after: streamed results, rounds, policies, callbacks, cancels."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Backoff, Batch, BatchItem, Cancel, ClosePolicy, Context, Fail
from headrace import batch as batch_module
from headrace.model.batch import BatchOutcome, BatchState
from headrace.model.errors import ConflictError, InvalidInputError, ResultTimeoutError
from headrace.model.job import CancelAnswer, JobState
from tests.unit.engine_app import MILLISECONDS, QUICK, quick_app
from tests.waiting import wait_until

#: The aggregator comes so rarely that only what follows a commit can explain a batch that closes.
RARE = {"aggregate_interval": timedelta(hours=1)}


class Work:
    """A task whose items wait, fail or succeed as the test says, and a callback that notes its calls."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.gates: dict[int, asyncio.Event] = {}
        #: Items that fail, and those that are cancelled by their handler.
        self.failing: set[int] = set()
        self.cancelled: set[int] = set()
        self.runs: Counter[int] = Counter()
        self.closed: list[str] = []
        self.task = app.task(name="work", retry=Backoff.none())(self.work)
        self.report = app.task(name="report")(self.note_close)

    async def work(self, number: int) -> Any:
        """Run one item."""
        self.runs[number] += 1
        if number in self.gates:
            await self.gates[number].wait()
        if number in self.cancelled:
            return Cancel("not wanted")
        return Fail(f"item {number}") if number in self.failing else number * 10

    async def note_close(self, batch_id: str) -> None:
        """Be the callback."""
        self.closed.append(batch_id)

    def gate(self, *numbers: int) -> None:
        """Let items wait until they are opened."""
        self.gates |= {number: asyncio.Event() for number in numbers}

    async def submit(self, count: int, **options: Any) -> Batch:
        """Submit numbers from 0."""
        return await self.app.submit(self.task, range(count), **options)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app without a worker, whose aggregator stays away."""
    async with quick_app(settings=replace(QUICK, recovery=replace(QUICK.recovery, **RARE))) as app:
        yield app


@pytest.fixture
def work(app: App) -> Work:
    """Return the task of these tests."""
    return Work(app)


async def collect(batch: Batch, cursor: str = "", *, follow: bool = True) -> list[BatchItem]:
    """Return finished items from `cursor` on."""
    return [item async for item in batch.results(cursor, follow=follow)]


async def test_results_come_while_the_batch_runs(app: App, work: Work) -> None:
    """An item is yielded as soon as it is recorded, failures with their error, long before the last one ends."""
    work.gate(2, 4)
    work.failing = {1}
    batch = await work.submit(5)
    async with app.worker():
        stream = batch.results()
        first = sorted([await anext(stream) for _ in range(3)], key=lambda item: item.index)
        assert [(item.index, item.status, item.result) for item in first] == [
            (0, JobState.SUCCEEDED, 0), (1, JobState.FAILED, None), (3, JobState.SUCCEEDED, 30),
        ]  # fmt: skip
        assert first[1].error is not None
        assert (first[1].error.kind, first[1].error.message) == ("failed", "item 1")
        assert (await batch.view()).state is BatchState.SEALED
        work.gates[4].set()
        assert (await anext(stream)).index == 4
        work.gates[2].set()
        assert [item.index async for item in stream] == [2]


async def test_without_following_only_what_is_there_is_read(app: App, work: Work) -> None:
    """`follow=False` yields what is finished and ends, however much is still to come."""
    work.gate(1)
    batch = await work.submit(2)
    assert await collect(batch, follow=False) == []
    async with app.worker(grace=0):

        async def one() -> list[BatchItem]:
            return await collect(batch, follow=False)

        assert [item.index for item in await wait_until(one)] == [0]


async def test_a_cursor_resumes_the_stream(app: App, work: Work) -> None:
    """Reading on from an item's cursor gives what was recorded after it, also for another reader, and loses nothing."""
    batch = await work.submit(30)
    async with app.worker(concurrency=1):
        await batch.wait(10)
    whole = await collect(batch)
    assert sorted(item.index for item in whole) == list(range(30))
    for position in (0, 13, 29):
        rest = await collect(app.batch(batch.id), whole[position].cursor)
        missing = {item.index for item in whole[position + 1 :]} - {item.index for item in rest}
        assert missing == set()
        assert len(rest) < 30
    with pytest.raises(InvalidInputError, match="cursor"):
        await collect(batch, "no cursor")


async def test_results_and_wait_may_be_asked_before_there_is_a_worker(
    app: App, work: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """`results()` warns once when nobody serves the queue, and yields when a worker comes."""
    monkeypatch.setattr(batch_module, "WORKER_WARNING_SECONDS", 0.05)
    batch = await work.submit(3)
    reading = asyncio.ensure_future(collect(batch))
    with caplog.at_level(logging.WARNING, "headrace.batch"):
        await wait_until(lambda: caplog.records)
        async with app.worker():
            assert len(await reading) == 3
    [warning] = caplog.records
    assert "no live worker serves queue 'default'" in warning.getMessage()
    assert "headrace worker" in warning.getMessage()


async def test_no_warning_where_a_worker_is_busy(
    app: App, work: Work, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A queue that is served but slow is no reason to warn."""
    monkeypatch.setattr(batch_module, "WORKER_WARNING_SECONDS", 0.02)
    work.gate(0)
    batch = await work.submit(1)
    async with app.worker():
        loop = asyncio.get_running_loop()
        loop.call_later(0.15, work.gates[0].set)
        with caplog.at_level(logging.WARNING, "headrace.batch"):
            assert len(await collect(batch)) == 1
    assert caplog.records == []


async def test_waiting_may_time_out(work: Work) -> None:
    """`wait(timeout)` ends the wait, not the batch."""
    batch = await work.submit(1)
    with pytest.raises(ResultTimeoutError, match="it goes on"):
        await batch.wait("30ms")
    assert (await batch.view()).state is BatchState.SEALED


async def test_progress_counts_each_item_once(app: App, work: Work) -> None:
    """Progress says how many items are in which state; the percentage is of those that ended."""
    work.gate(0)
    work.failing = {1}
    work.cancelled = {2}
    batch = await work.submit(8)
    async with app.worker(queues={"default": 8}):

        async def rest_ended() -> bool:
            return (await batch.progress()).done == 7

        await wait_until(rest_ended)
        progress = await batch.progress()
        assert (progress.total, progress.succeeded, progress.failed, progress.cancelled) == (8, 5, 1, 1)
        assert (progress.running, progress.waiting, progress.percent) == (1, 0, 88)
        work.gates[0].set()
        await batch.wait(10)
    assert (await batch.progress()).percent == 100


async def test_a_batch_closes_with_its_last_item(app: App, work: Work) -> None:
    """Without any sweep the batch is closed right after its last ending, and its callback runs."""
    batch = await work.submit(20, on_close=work.report)
    async with app.worker():
        view = await batch.wait(10)
        await wait_until(lambda: work.closed)
    jobs = await app.runtime.stores.inspect.list_jobs(batch_id=batch.id, limit=100)
    last = max(job.finished_at for job in jobs if job.finished_at)
    assert view.closed_at is not None
    assert view.closed_at - last < 500 * MILLISECONDS
    assert work.closed == [str(batch.id)]


@pytest.mark.parametrize(
    ("failing", "cancelled", "outcome"),
    [
        (set(), set(), BatchOutcome.SUCCEEDED),
        ({1}, set(), BatchOutcome.PARTIAL),
        ({1}, {0}, BatchOutcome.PARTIAL),
        ({0, 1, 2}, set(), BatchOutcome.FAILED),
    ],
)
async def test_how_a_batch_ended_follows_from_its_items(
    app: App, work: Work, failing: set[int], cancelled: set[int], outcome: BatchOutcome
) -> None:
    """Failures are reported by the outcome; under the default policy they stop nothing."""
    work.failing, work.cancelled = failing, cancelled
    batch = await work.submit(3)
    async with app.worker():
        assert (await batch.wait(10)).outcome is outcome
    assert len(await collect(batch)) == 3


async def test_failed_items_are_retried_in_a_new_round(app: App, work: Work) -> None:
    """`retry_failed` runs only the failures again; each item counts once, and the callback runs once per round."""
    work.failing, work.cancelled = {1, 3}, {4}
    batch = await work.submit(6, on_close=work.report)
    async with app.worker():
        assert (await batch.wait(10)).outcome is BatchOutcome.PARTIAL
        work.failing = {3}
        assert await batch.retry_failed() == 2
        assert ((await batch.wait(10)).round, (await batch.view()).outcome) == (2, BatchOutcome.PARTIAL)
        assert work.runs == Counter({0: 1, 1: 2, 2: 1, 3: 2, 4: 1, 5: 1})
        progress = await batch.progress()
        assert (progress.total, progress.succeeded, progress.failed, progress.cancelled) == (6, 4, 1, 1)
        work.failing = set()
        assert await batch.retry_failed() == 1
        assert (await batch.wait(10)).round == 3
        assert await batch.retry_failed() == 0
        assert ((await batch.view()).state, (await batch.view()).round) == (BatchState.CLOSED, 3)
        await wait_until(lambda: len(work.closed) == 3)
    assert work.closed == [str(batch.id)] * 3
    latest = {item.index: item.status for item in await collect(batch)}
    assert latest == dict.fromkeys(range(6), JobState.SUCCEEDED) | {4: JobState.CANCELLED}


async def test_only_a_closed_batch_has_failures_to_retry(work: Work) -> None:
    """Retrying while the batch runs is refused."""
    batch = await work.submit(2)
    with pytest.raises(ConflictError, match="closed"):
        await batch.retry_failed()


@pytest.mark.parametrize(
    ("policy", "stopped"),
    [(ClosePolicy.always(), False), (ClosePolicy.threshold(2), False), (ClosePolicy.threshold(1), True),
     (ClosePolicy.fail_fast(), True)],
    ids=["always", "threshold not passed", "threshold passed", "fail fast"],
)  # fmt: skip
async def test_a_policy_stops_a_batch_at_once(app: App, work: Work, policy: ClosePolicy, stopped: bool) -> None:
    """Once more items failed than the policy allows, nothing more starts, running items stop, and the batch closes."""
    work.gate(2)
    work.failing = {0, 1}
    batch = await work.submit(100, policy=policy, on_close=work.report)
    async with app.worker(concurrency=1 if stopped else 5):
        if not stopped:

            async def others_ended() -> bool:
                return (await batch.progress()).done == 99

            await wait_until(others_ended)
            work.gates[2].set()
        view = await batch.wait(10)
        await wait_until(lambda: work.closed)
    progress = await batch.progress()
    if stopped:
        assert (view.outcome, progress.succeeded) == (BatchOutcome.FAILED, 0)
        assert progress.cancelled + progress.failed == 100
        assert sum(work.runs.values()) <= 3
    else:
        assert (view.outcome, progress.succeeded, progress.failed) == (BatchOutcome.PARTIAL, 98, 2)


async def test_acks_do_not_wait_for_a_batch_that_closes(app: App, work: Work, monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing, which may settle thousands of items, happens beside the acks; what ends meanwhile is closed after it."""
    store = app.runtime.stores.batches
    close, gate = store.close_batches, asyncio.Event()
    asked: list[int] = []

    async def slow(batch_ids: Any) -> Any:
        asked.append(len(batch_ids))
        await gate.wait()
        return await close(batch_ids)

    monkeypatch.setattr(store, "close_batches", slow)
    first, others = await work.submit(1), [await work.submit(1) for _ in range(5)]
    async with app.worker(concurrency=1):
        await wait_until(lambda: asked)
        for batch in others:

            async def done(batch: Batch = batch) -> bool:
                return (await batch.progress()).done == 1

            await wait_until(done)
        assert asked == [1]
        gate.set()
        for batch in (first, *others):
            await batch.wait(10)
    assert asked == [1, 5]


async def test_a_batch_is_cancelled(app: App, work: Work) -> None:
    """Cancelling ends what has not started and stops what runs; the callback runs, and nothing else ever does."""
    work.gate(0, 1)
    batch = await work.submit(50, on_close=work.report)
    async with app.worker(concurrency=2):
        await wait_until(lambda: work.runs.total() == 2)
        await batch.cancel()
        view = await batch.wait(10)
        await wait_until(lambda: work.closed)
        assert (view.outcome, (await batch.progress()).cancelled) == (BatchOutcome.CANCELLED, 50)
        await batch.cancel()
    assert (work.runs.total(), work.closed) == (2, [str(batch.id)])
    items = await collect(batch)
    assert {item.status for item in items} == {JobState.CANCELLED}
    assert len(items) == 50


async def test_a_batch_without_a_worker_is_cancelled_at_once(work: Work) -> None:
    """Nothing runs, so nothing has to be waited for: the batch closes with the cancel."""
    batch = await work.submit(2_500)
    await batch.cancel()
    assert (await batch.view()).outcome is BatchOutcome.CANCELLED
    assert (await batch.progress()).cancelled == 2_500


async def test_an_item_that_would_be_retried_ends_with_its_cancelled_batch(app: App, work: Work) -> None:
    """A running item of a cancelled batch that fails is not run again, and the batch closes without a sweep."""
    entered, gate = asyncio.Event(), asyncio.Event()

    @app.task(retry=Backoff.fixed("1h", max_attempts=5))
    async def stumble(number: int, ctx: Context) -> None:
        entered.set()
        while not gate.is_set():
            try:
                await gate.wait()
            except asyncio.CancelledError:
                continue
        raise RuntimeError("stumbled")

    batch = await app.submit(stumble, [1])
    async with app.worker():
        await entered.wait()
        await batch.cancel()
        gate.set()
        assert (await batch.wait(10)).outcome is BatchOutcome.CANCELLED


async def test_cancelling_the_last_item_closes_the_batch(app: App, work: Work) -> None:
    """A batch whose last open item is cancelled by itself closes there and then."""
    batch = await work.submit(1)
    [job] = await app.runtime.stores.inspect.list_jobs(batch_id=batch.id)
    assert await app.job(job.id).cancel() is CancelAnswer.CANCELLED
    assert (await batch.view()).state is BatchState.CLOSED


async def test_the_callback_is_a_task_like_any_other(app: App, work: Work) -> None:
    """The callback may be a task of another queue; it gets the batch id, and may read the results."""
    seen: list[Any] = []

    @app.task(queue="reports")
    async def summarise(batch_id: str) -> int:
        items = await collect(app.batch(batch_id), follow=False)
        seen.append(sorted(item.result for item in items))
        return len(items)

    await work.submit(3, on_close=summarise)
    async with app.worker():
        await wait_until(lambda: seen)
    assert seen == [[0, 10, 20]]


async def test_the_callback_of_a_batch_that_closes_on_two_workers_runs_once(app: App, work: Work) -> None:
    """However many workers record the last items at the same moment, the batch closes once."""
    async with app.worker(concurrency=1), app.worker(concurrency=1), app.worker(concurrency=1):
        batches = [await work.submit(3, on_close=work.report) for _ in range(30)]
        for batch in batches:
            await batch.wait(20)
        await wait_until(lambda: len(work.closed) == 30)
    assert Counter(work.closed) == Counter(str(batch.id) for batch in batches)


async def test_the_aggregator_closes_what_nobody_closed(app: App, work: Work) -> None:
    """A batch whose last worker died between its ack and the close is closed, with its callback, by the leader."""
    batch = await work.submit(2, on_close=work.report)
    stores = app.runtime.stores

    async def nothing(batch_ids: Any) -> list[Any]:
        return []

    close = stores.batches.close_batches
    stores.batches.close_batches = nothing  # type: ignore[method-assign]
    async with app.worker():
        await wait_until(lambda: work.runs.total() == 2)
    assert (await batch.view()).state is BatchState.SEALED
    stores.batches.close_batches = close  # type: ignore[method-assign]
    app.settings = replace(app.settings, recovery=QUICK.recovery)
    async with app.worker():
        assert (await batch.wait(10)).outcome is BatchOutcome.SUCCEEDED
        await wait_until(lambda: work.closed)
