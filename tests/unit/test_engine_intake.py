"""Enqueueing: durable ids, keys, times, coalesced inserts, and answers that were lost."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from headrace import App, JobHandle
from headrace.engine import retrying
from headrace.model.errors import ConfigError, ConflictError, InvalidInputError, StoreUnavailableError
from headrace.model.job import JobState, NewJob
from tests.unit.engine_app import quick_app, until_final, view_of

AT_ONCE = (0.0, 0.0)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app with a task and no worker."""
    app = quick_app()

    @app.task
    async def work(number: int) -> int:
        return number

    async with app:
        yield app


class Inserts:
    """Counts the inserts of a store, and may fail some before or after they are done."""

    def __init__(self, app: App, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sizes: list[int] = []
        #: For each coming insert: "before" or "after" fails it there, "" lets it pass.
        self.faults: list[str] = []
        jobs = app.runtime.stores.jobs
        self._insert = jobs.insert_jobs
        monkeypatch.setattr(jobs, "insert_jobs", self)
        monkeypatch.setattr(retrying, "RETRY_DELAYS", AT_ONCE)

    async def __call__(self, jobs: Sequence[NewJob], *, retrying: bool = False) -> list[UUID]:
        """Insert, as the port says."""
        self.sizes.append(len(jobs))
        fault = self.faults.pop(0) if self.faults else ""
        if fault == "before":
            raise StoreUnavailableError("connection refused")
        # A real store answers after other tasks had their turn.
        await asyncio.sleep(0)
        ids = await self._insert(jobs, retrying=retrying)
        if fault == "after":
            raise StoreUnavailableError("connection lost after the commit")
        return ids


@pytest.fixture
def inserts(app: App, monkeypatch: pytest.MonkeyPatch) -> Inserts:
    """Return a view on the inserts of the app's store."""
    return Inserts(app, monkeypatch)


async def all_jobs(app: App) -> list[UUID]:
    """Return the ids of every job there is."""
    return [view.id for view in await app.runtime.stores.inspect.list_jobs(limit=10_000)]


async def test_concurrent_enqueues_share_inserts(app: App, inserts: Inserts) -> None:
    """64 enqueues at once are a handful of inserts, and each caller gets the id of its own job."""
    work = app.find_task("work")
    handles = await asyncio.gather(*(work.enqueue(number) for number in range(64)))
    assert sum(inserts.sizes) == 64
    assert len(inserts.sizes) <= 3
    for number, handle in enumerate(handles):
        assert (await view_of(app, handle)).args["args"] == [number]


async def test_a_lone_enqueue_waits_for_nobody(app: App, inserts: Inserts) -> None:
    """An enqueue alone is one insert of one job."""
    await app.find_task("work").enqueue(1)
    assert inserts.sizes == [1]


async def test_a_refused_row_fails_only_its_own_caller(app: App, inserts: Inserts) -> None:
    """A conflict within a coalesced insert reaches the one who caused it; all the others are stored."""
    work = app.find_task("work")
    await work.options(key="taken").enqueue(0)
    calls = [work.options(key="taken" if number == 17 else f"k{number}").enqueue(number) for number in range(1, 65)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    failed = [number for number, answer in enumerate(answers, start=1) if isinstance(answer, BaseException)]
    assert failed == [17]
    assert isinstance(answers[16], ConflictError)
    assert len(await all_jobs(app)) == 64


async def test_an_unexpected_error_reaches_its_caller_and_the_next_enqueue_works(
    app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A surprise in the store neither hangs callers nor stops those who come later."""
    work = app.find_task("work")
    insert = app.runtime.stores.jobs.insert_jobs

    async def surprise(jobs: Sequence[NewJob], *, retrying: bool = False) -> list[UUID]:
        await asyncio.sleep(0)
        if any("13" in job.args for job in jobs):
            raise RuntimeError("a bug")
        return await insert(jobs, retrying=retrying)

    monkeypatch.setattr(app.runtime.stores.jobs, "insert_jobs", surprise)
    calls = [work.enqueue(number) for number in (12, 13, 14)]
    first, second, third = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5)
    assert isinstance(second, RuntimeError)
    assert not isinstance(first, BaseException)
    assert not isinstance(third, BaseException)
    await work.enqueue(15)
    assert len(await all_jobs(app)) == 3


async def test_callers_in_a_loop_go_on_sharing_inserts(app: App, inserts: Inserts) -> None:
    """Callers that were answered together and enqueue again share the next insert too, none of them goes alone."""
    work = app.find_task("work")

    async def caller() -> None:
        for number in range(4):
            await work.enqueue(number)

    await asyncio.gather(*(caller() for _ in range(16)))
    assert sum(inserts.sizes) == 64
    assert len(inserts.sizes) <= 2 + 4 + 1
    for number in range(3):
        await work.enqueue(number)
    assert inserts.sizes[-3:] == [1, 1, 1]


async def test_those_behind_a_lone_caller_that_gives_up_are_stored(app: App, inserts: Inserts) -> None:
    """Cancelling the caller whose insert is under way leaves those who waited behind it theirs."""
    work = app.find_task("work")
    await work.enqueue(-1)  # the first asks which queues are closed
    calls = [asyncio.ensure_future(work.enqueue(number)) for number in range(3)]
    await asyncio.sleep(0)
    assert inserts.sizes == [1, 1]
    calls[0].cancel()
    answers = await asyncio.wait_for(asyncio.gather(*calls, return_exceptions=True), 5)
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [True, False, False]
    assert {answer.id for answer in answers[1:] if isinstance(answer, JobHandle)} <= set(await all_jobs(app))


async def test_many_jobs_of_a_list_are_one_insert(app: App, inserts: Inserts) -> None:
    """`enqueue_many` makes one job per item in one insert; handles come in order, with the options of the call."""
    work = app.find_task("work")
    handles = await work.options(priority="bulk", queue="slow").enqueue_many(list(range(100)))
    assert inserts.sizes == [100]
    views = [await view_of(app, handle) for handle in handles]
    assert [view.args["args"] for view in views] == [[number] for number in range(100)]
    assert {(view.queue, view.priority, view.batch_id) for view in views} == {("slow", 9, None)}
    async with app.worker(queues=["slow"]):
        assert await asyncio.gather(*(handle.result(10) for handle in handles)) == list(range(100))


async def test_many_jobs_come_from_any_iterable(app: App, inserts: Inserts) -> None:
    """Generators, async ones too, and mappings of keyword arguments; nothing at all is no insert."""
    work = app.find_task("work")

    async def numbers() -> AsyncIterator[int]:
        yield 1
        yield 2

    handles = await work.enqueue_many(number for number in range(2))
    handles += await work.enqueue_many(numbers())
    assert await work.enqueue_many([]) == []
    assert inserts.sizes == [2, 2]
    assert [(await view_of(app, handle)).args["args"] for handle in handles] == [[0], [1], [1], [2]]
    [spread] = await work.enqueue_many([{"number": 7}], spread=True)
    assert (await view_of(app, spread)).args == {"args": [], "kwargs": {"number": 7}}


async def test_many_jobs_are_stored_all_or_none(app: App, inserts: Inserts) -> None:
    """One bad item refuses the whole call by its position, before anything is stored; one key cannot name many jobs."""
    work = app.find_task("work")
    with pytest.raises(InvalidInputError, match="item 2"):
        await work.enqueue_many([1, 2, float("nan")])
    with pytest.raises(InvalidInputError, match="items must be a list"):
        await work.enqueue_many("text")
    with pytest.raises(InvalidInputError, match="key names one job"):
        await work.options(key="k").enqueue_many([1])
    assert inserts.sizes == []


async def test_a_lost_answer_makes_no_second_job_of_many(app: App, inserts: Inserts) -> None:
    """A call of many whose answer was lost is sent again under the same ids and recognised."""
    inserts.faults = ["after"]
    handles = await app.find_task("work").enqueue_many([1, 2, 3])
    assert inserts.sizes == [3, 3]
    assert set(await all_jobs(app)) == {handle.id for handle in handles}


async def test_a_lost_answer_makes_no_second_job(app: App, inserts: Inserts) -> None:
    """An insert whose answer was lost after its commit is sent again and recognised by its ids."""
    inserts.faults = ["after", "before", ""]
    handle = await app.find_task("work").enqueue(1)
    assert (len(inserts.sizes), await all_jobs(app)) == (3, [handle.id])


async def test_a_lost_answer_is_recognised_even_when_the_job_has_ended(app: App, inserts: Inserts) -> None:
    """A job that was inserted, run and finished before its insert is sent again is not run a second time."""
    runs: list[int] = []

    @app.task
    async def count(number: int) -> None:
        runs.append(number)

    insert, ended = inserts._insert, asyncio.Event()

    async def slow(jobs: Sequence[NewJob], *, retrying: bool = False) -> list[UUID]:
        ids = await insert(jobs, retrying=retrying)
        if not retrying:
            app.runtime.stores.notifier.hint("queue:default")
            await app.runtime.waiters.final(ids[0])
            ended.set()
            raise StoreUnavailableError("connection lost after the commit")
        return ids

    inserts._insert = slow  # type: ignore[method-assign]
    async with app.worker():
        handle = await asyncio.wait_for(count.enqueue(1), 10)
        assert ended.is_set()
        await handle.result(10)
    assert (runs, len(await all_jobs(app))) == ([1], 1)


async def test_a_store_that_stays_away_is_an_error_after_a_while(app: App, inserts: Inserts) -> None:
    """Enqueueing gives up after its retries and says that the store cannot be reached; nothing was stored."""
    inserts.faults = ["before"] * 10
    with pytest.raises(StoreUnavailableError, match="connection refused"):
        await app.find_task("work").enqueue(1)
    assert len(inserts.sizes) == 1 + len(AT_ONCE)
    assert await all_jobs(app) == []


async def test_a_caller_that_gives_up_disturbs_nobody(app: App, inserts: Inserts) -> None:
    """Cancelling one enqueue of a coalesced insert leaves the others theirs."""
    work = app.find_task("work")
    calls = [asyncio.ensure_future(work.enqueue(number)) for number in range(3)]
    await asyncio.sleep(0)
    calls[1].cancel()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [isinstance(answer, asyncio.CancelledError) for answer in answers] == [False, True, False]


async def test_the_same_key_and_arguments_are_the_same_job(app: App) -> None:
    """A key stands for one job of its task, also after that has ended and for callers at the same moment."""
    work = app.find_task("work")
    handles = await asyncio.gather(*(work.options(key="k").enqueue(1) for _ in range(10)))
    assert len({handle.id for handle in handles}) == 1
    async with app.worker():
        await handles[0].result(10)
    assert (await work.options(key="k").enqueue(1)).id == handles[0].id
    assert len(await all_jobs(app)) == 1


async def test_a_key_with_other_arguments_is_a_conflict(app: App) -> None:
    """The same key with another body is refused, and changes nothing; another task may use the key."""
    work, other = app.find_task("work"), app.task(name="other")(lambda number: number)
    first = await work.options(key="k").enqueue(1)
    with pytest.raises(ConflictError, match="another body"):
        await work.options(key="k").enqueue(2)
    assert (await view_of(app, first)).args["args"] == [1]
    await other.options(key="k").enqueue(2)
    assert len(await all_jobs(app)) == 2


async def test_a_job_waits_for_its_time(app: App) -> None:
    """A job with a delay is scheduled, and runs when it is due, not before."""
    work = app.find_task("work")
    asked_at = datetime.now(UTC)
    soon = await work.options(run_at=0.15).enqueue(1)
    late = await work.options(run_at=datetime.now(UTC) + timedelta(hours=1)).enqueue(2)
    assert [(await view_of(app, job)).state for job in (soon, late)] == [JobState.SCHEDULED] * 2
    async with app.worker():
        view = await until_final(app, soon)
        assert view.started_at is not None
        assert view.started_at >= asked_at + timedelta(seconds=0.15)
        assert (await view_of(app, late)).state is JobState.SCHEDULED


async def test_an_instant_in_the_past_is_now(app: App) -> None:
    """`run_at` behind us makes the job ready; a naive datetime is refused, because its zone is anyone's guess."""
    work = app.find_task("work")
    job = await work.options(run_at=datetime(2020, 1, 1, tzinfo=UTC)).enqueue(1)
    assert (await view_of(app, job)).state is JobState.READY
    with pytest.raises(InvalidInputError, match="aware"):
        work.options(run_at=datetime(2020, 1, 1))


async def test_options_of_a_call_are_stored_with_the_job(app: App) -> None:
    """Queue, priority and attempts of a call go before those of its task."""
    call = app.find_task("work").options(queue="slow", priority="bulk").options(max_attempts=9, timeout="5m")
    view = await view_of(app, await call.enqueue(1))
    assert (view.queue, view.priority, view.max_attempts) == ("slow", 9, 9)


async def test_smaller_priorities_run_earlier(app: App) -> None:
    """Of jobs that are ready, the more urgent class runs first, and within a class the older."""
    order: list[str] = []

    @app.task(queue="ordered")
    async def note(name: str) -> None:
        order.append(name)

    wanted = (("bulk", "bulk"), ("first", "standard"), ("second", "standard"), ("now", "interactive"))
    jobs = [await note.options(priority=priority).enqueue(name) for name, priority in wanted]
    async with app.worker(queues={"ordered": 1}):
        await asyncio.gather(*(job.result(10) for job in jobs))
    assert order == ["now", "first", "second", "bulk"]


async def test_the_callers_connection_needs_a_store_that_is_the_callers_database(app: App) -> None:
    """Transactional enqueue on a store that cannot do it is refused with what to use."""
    with pytest.raises(ConfigError, match="PostgreSQL"):
        await app.find_task("work").options(connection=object()).enqueue(1)
