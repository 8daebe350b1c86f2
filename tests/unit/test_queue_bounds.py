"""Bounded queues: who enqueues is refused or waits, streams go at the pace of the backlog, others pay nothing."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from headrace import App
from headrace.engine import intake
from headrace.engine.intake import LEAST_CREDIT, Intake
from headrace.model.backlog import Bound, OnFull
from headrace.model.errors import InvalidInputError, QueueFullError
from headrace.model.job import JobSpec, NewJob
from headrace.model.queue import QueueRule
from headrace.settings import load_settings
from headrace.stores.memory import open_memory_stores
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

ARGS = '{"args":[1],"kwargs":{}}'
SECONDS = timedelta(seconds=1)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app with a task and no worker."""
    app = quick_app()

    @app.task
    async def work(number: int) -> int:
        return number

    async with app:
        yield app


class Asked:
    """Counts what is asked of a store about a queue's intake."""

    def __init__(self, stores: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        self.counts: list[float] = []
        self.reads = 0
        self._count, self._read = stores.inspect.waiting_jobs, stores.control.queue_states
        monkeypatch.setattr(stores.inspect, "waiting_jobs", self.waiting_jobs)
        monkeypatch.setattr(stores.control, "queue_states", self.queue_states)

    async def waiting_jobs(self, queue: str, *, at_most: int) -> int:
        """Count, as the port says."""
        self.counts.append(asyncio.get_running_loop().time())
        await asyncio.sleep(0)
        count: int = await self._count(queue, at_most=at_most)
        return count

    async def queue_states(self) -> Any:
        """Read, as the port says."""
        self.reads += 1
        return await self._read()


def bound(app: App, most: int, on_full: OnFull = OnFull.REFUSE, wait: float = 5.0) -> None:
    """Let at most so many jobs wait in the default queue."""
    app.runtime.queue_rules["default"] = QueueRule("default", bound=Bound(most, on_full, wait * SECONDS))


async def waiting(app: App) -> int:
    """Return how many jobs wait in the default queue."""
    return await app.runtime.stores.inspect.waiting_jobs("default", at_most=1_000_000)


async def work_off(app: App, count: int) -> None:
    """Take `count` jobs out of the default queue."""
    for view in await app.runtime.stores.inspect.list_jobs(limit=count):
        await app.runtime.stores.control.cancel_job(view.id)


async def test_a_full_queue_refuses_with_a_time_to_try_again(app: App) -> None:
    """The job over the bound is refused by an error that machines and retry policies can read; nothing is stored."""
    bound(app, 3)
    work = app.find_task("work")
    for number in range(3):
        await work.enqueue(number)
    with pytest.raises(QueueFullError, match=r"queue default is full \(max_waiting = 3\)") as refused:
        await work.enqueue(3)
    assert (refused.value.code, refused.value.transient, refused.value.queue) == ("queue_full", True, "default")
    assert refused.value.retry_after == SECONDS
    assert await waiting(app) == 3


async def test_a_queue_with_room_again_lets_in_again(app: App) -> None:
    """Once jobs have left, the next enqueue after at most a tenth of a second is let in."""
    bound(app, 2)
    work = app.find_task("work")
    await work.enqueue_many([1, 2])
    await work_off(app, 1)

    async def again() -> bool:
        try:
            await work.enqueue(3)
        except QueueFullError:
            return False
        return True

    await wait_until(again, message="room")
    assert await waiting(app) == 2


async def test_scheduled_jobs_take_room_and_running_ones_do_not(app: App) -> None:
    """What waits counts, whenever it is due; what runs has left the queue."""
    bound(app, 2)
    work = app.find_task("work")
    await work.options(run_at="1h").enqueue_many([1, 2])
    with pytest.raises(QueueFullError):
        await work.enqueue(3)


async def test_many_and_lists_are_refused_as_one(app: App) -> None:
    """A call of many jobs, or a list as a batch, goes in whole or not at all; other queues are not concerned."""
    bound(app, 10)
    work = app.find_task("work")
    await work.enqueue_many(range(8))
    with pytest.raises(QueueFullError):
        await work.enqueue_many(range(3))
    with pytest.raises(QueueFullError):
        await app.submit(work, list(range(3)))
    assert await waiting(app) == 8
    assert await app.runtime.stores.inspect.list_batches() == []
    await work.options(queue="other").enqueue_many(range(30))


async def test_a_call_larger_than_the_bound_needs_an_empty_queue(app: App) -> None:
    """It would never fit otherwise: it goes into an empty queue, and overshoots the bound by itself."""
    bound(app, 10)
    work = app.find_task("work")
    await work.enqueue(0)
    with pytest.raises(QueueFullError):
        await app.submit(work, list(range(25)))
    await work_off(app, 1)

    async def submitted() -> bool:
        try:
            await app.submit(work, list(range(25)))
        except QueueFullError:
            return False
        return True

    await wait_until(submitted, message="an empty queue")
    assert await waiting(app) == 25


async def test_who_may_wait_waits_until_there_is_room(app: App) -> None:
    """With on_full="wait" an enqueue into a full queue returns once a job has left."""
    bound(app, 2, OnFull.WAIT)
    work = app.find_task("work")
    await work.enqueue_many([1, 2])
    late = asyncio.create_task(work.enqueue(3))
    done, _ = await asyncio.wait([late], timeout=0.25)
    assert not done
    await work_off(app, 1)
    await asyncio.wait_for(late, 5)
    assert await waiting(app) == 2


async def test_waiting_for_room_has_an_end(app: App) -> None:
    """Whoever waited as long as the rule allows is refused like everybody else, also behind others that wait."""
    bound(app, 1, OnFull.WAIT, wait=0.2)
    work = app.find_task("work")
    await work.enqueue(1)
    calls = [work.enqueue(number) for number in range(2)]
    answers = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5)
    assert [type(answer) for answer in answers] == [QueueFullError, QueueFullError]
    assert {str(answer) for answer in answers} == {
        "queue default is full (max_waiting = 1): no room for 200ms; send the same again later, raise wait_timeout or "
        "max_waiting, or start workers"
    }
    assert await waiting(app) == 1


async def test_a_full_queue_is_counted_ten_times_a_second_at_most(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many ask, the store is asked at most every 100 ms; in between they are refused on the last answer."""
    bound(app, 1)
    asked = Asked(app.runtime.stores, monkeypatch)
    work = app.find_task("work")
    await work.enqueue(1)
    refused, loop = 0, asyncio.get_running_loop()
    end = loop.time() + 0.35
    while loop.time() < end:
        calls = (work.enqueue(number) for number in range(20))
        answers = await asyncio.gather(*calls, return_exceptions=True)
        refused += sum(isinstance(answer, QueueFullError) for answer in answers)
    assert refused > 100
    gaps = [later - earlier for earlier, later in zip(asked.counts, asked.counts[1:], strict=False)]
    assert gaps, "never asked again"
    assert min(gaps[1:], default=1.0) >= intake.ASK_SECONDS * 0.99


async def test_room_is_spent_on_credit(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """While there is room, one count lets in many jobs."""
    bound(app, 100_000)
    asked = Asked(app.runtime.stores, monkeypatch)
    work = app.find_task("work")
    for number in range(500):
        await work.enqueue(number)
    elapsed = asked.counts[-1] - asked.counts[0]
    assert len(asked.counts) <= 1 + elapsed / intake.ASK_SECONDS + 1


async def test_an_unbounded_queue_is_never_counted(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a bound nothing is counted, and what is closed is read once a second at most, not once a job."""
    asked = Asked(app.runtime.stores, monkeypatch)
    work = app.find_task("work")
    loop = asyncio.get_running_loop()
    began = loop.time()
    for number in range(1_000):
        await work.enqueue(number)
    assert asked.counts == []
    assert asked.reads <= 1 + (loop.time() - began) / intake.REFRESH_SECONDS + 1


class Submitter:
    """A process of its own, as far as the intake is concerned."""

    def __init__(self, stores: Any, most: int) -> None:
        self._stores = stores
        self._intake = Intake(stores, {"default": QueueRule("default", bound=Bound(most))})
        self.stored = 0

    async def press(self) -> None:
        """Enqueue until refused."""
        while True:
            try:
                if not self._intake.lets_in("default"):
                    await self._intake.enter("default")
            except QueueFullError:
                return
            # A real store takes its time: others press on meanwhile.
            await asyncio.sleep(0)
            await self._stores.jobs.insert_jobs([NewJob(JobSpec("work"), ARGS)])
            self.stored += 1


@pytest.mark.parametrize("most", [100, 4_000])
async def test_the_bound_is_overshot_by_no_more_than_the_credits(most: int) -> None:
    """Eight processes that press at once store no less than the bound and at most seven credits more."""
    stores = open_memory_stores()
    submitters = [Submitter(stores, most) for _ in range(8)]
    await asyncio.wait_for(asyncio.gather(*(one.press() for one in submitters)), 30)
    credit = max(LEAST_CREDIT, most // 16)
    total = sum(one.stored for one in submitters)
    assert most <= total <= most + 7 * min(credit, most)


async def test_a_stream_is_pulled_as_the_backlog_allows(app: App) -> None:
    """A generator is at most a slice ahead of the room in its queue, and goes on when jobs leave."""
    bound(app, 2_000)
    made = 0

    def source() -> Iterator[int]:
        nonlocal made
        for number in range(5_000):
            made += 1
            yield number

    await _streamed(app, source(), lambda: made)


async def test_an_async_stream_is_pulled_as_the_backlog_allows(app: App) -> None:
    """An async generator too."""
    bound(app, 2_000, OnFull.WAIT, wait=0.1)
    made = 0

    async def source() -> AsyncIterator[int]:
        nonlocal made
        for number in range(5_000):
            made += 1
            yield number

    await _streamed(app, source(), lambda: made)


async def _streamed(app: App, source: Any, made: Any) -> None:
    submitting = asyncio.create_task(app.submit(app.find_task("work"), source))
    await wait_until(lambda: made() >= 2_000, message="the first slices")
    done, _ = await asyncio.wait([submitting], timeout=0.3)
    assert not done
    assert made() <= 3_000
    assert await waiting(app) == 2_000
    async with app.worker(concurrency=100):
        batch = await asyncio.wait_for(submitting, 20)
        assert (await batch.wait(20)).total == 5_000


async def test_a_stream_that_was_cut_takes_no_room_for_what_is_there(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """Slices that are stored already cost no credit when the stream is sent again."""
    bound(app, 4_000)
    work = app.find_task("work")
    append = app.runtime.stores.batches.append_slice

    async def cut(part: Any) -> bool:
        if part.first == 2_000:
            raise RuntimeError("cut")
        return await append(part)

    monkeypatch.setattr(app.runtime.stores.batches, "append_slice", cut)
    with pytest.raises(RuntimeError, match="cut"):
        await app.submit(work, iter(range(4_000)), key="s")
    monkeypatch.setattr(app.runtime.stores.batches, "append_slice", append)
    batch = await asyncio.wait_for(app.submit(work, iter(range(4_000)), key="s"), 5)
    assert (await batch.progress()).total == 4_000


async def test_a_transaction_is_refused_at_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """On the caller's connection nobody waits for room, whatever the rule says: the transaction would stay open."""
    bound(app, 1, OnFull.WAIT, wait=60)
    inserted: list[int] = []

    class Foreign:
        async def insert_jobs_on(self, connection: Any, jobs: Sequence[NewJob]) -> list[UUID]:
            inserted.append(len(jobs))
            return [job.id for job in jobs]

        def after_commit(self, connection: Any, action: Any) -> bool:
            return False

    client = app.runtime.client
    object.__setattr__(client._stores, "foreign", Foreign())
    work = app.find_task("work")
    await work.options(connection=object()).enqueue(1)
    await work.enqueue(2)
    with pytest.raises(QueueFullError, match="again in a second; a transaction is not held open to wait for room"):
        await asyncio.wait_for(work.options(connection=object()).enqueue(3), 5)
    assert inserted == [1]


async def test_a_bound_stands_in_the_settings(tmp_path: Path) -> None:
    """`[queues.NAME]` of headrace.toml bounds a queue, over what the code says."""
    file = tmp_path / "headrace.toml"
    file.write_text('[queue]\ntype = "memory"\n[queues.mail]\nmax_waiting = 1\n', encoding="utf-8")
    app = App(settings=load_settings(environ={}, file=file))
    app.queue("mail", max_waiting=100, on_full="refuse")

    @app.task(queue="mail")
    async def send(number: int) -> None:
        """Be enqueued."""

    async with app:
        await send.enqueue(1)
        with pytest.raises(QueueFullError, match="max_waiting = 1"):
            await send.enqueue(2)


@pytest.mark.parametrize(
    ("field", "values"),
    [("max_waiting", {"max_waiting": 0}), ("max_waiting", {"max_waiting": True}), ("on_full", {"on_full": "drop"}),
     ("wait_timeout", {"wait_timeout": "0s"})],
)  # fmt: skip
def test_a_wrong_bound_is_named(field: str, values: dict[str, Any]) -> None:
    """A wrong value is refused with its field."""
    with pytest.raises(InvalidInputError) as refused:
        Bound.parse(**{"max_waiting": 5, **values})
    assert refused.value.field == field


@pytest.mark.parametrize("options", [{}, {"on_full": "refuse"}])
def test_a_time_to_wait_where_nobody_waits_is_refused(options: dict[str, Any]) -> None:
    """`wait_timeout` without `on_full="wait"` would do nothing: that is said where it is declared."""
    app = quick_app()
    with pytest.raises(InvalidInputError, match="wait_timeout goes with on_full=\"wait\", got '5s'"):
        app.queue("mail", max_waiting=5, wait_timeout="5s", **options)
    with pytest.raises(InvalidInputError, match='on_full must be "refuse" or "wait"'):
        app.queue("mail", max_waiting=5, wait_timeout="5s", on_full="drop")  # type: ignore[arg-type]
    assert app.queue("mail", max_waiting=5, wait_timeout="5s", on_full="wait").bound is not None


@pytest.mark.parametrize(
    ("table", "waits"), [("on_full = 'refuse'", False), ("wait_timeout = '9s'", True), ("max_waiting = 7", True)]
)
async def test_settings_may_turn_waiting_off_or_change_it(tmp_path: Path, table: str, waits: bool) -> None:
    """The code waits for room; a table that refuses needs no word about the time, and one may stand alone."""
    file = tmp_path / "headrace.toml"
    file.write_text(f'[queue]\ntype = "memory"\n[queues.mail]\n{table}\n', encoding="utf-8")
    app = App(settings=load_settings(environ={}, file=file))
    app.queue("mail", max_waiting=100, on_full="wait", wait_timeout="5s")
    async with app:
        bound = app.registry.queue_rules["mail"].bound
    assert bound is not None
    assert (bound.on_full is OnFull.WAIT) is waits
