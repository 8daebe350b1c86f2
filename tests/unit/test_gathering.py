"""Tasks with a batch_size: one call of the handler for several jobs, each of which keeps an ending of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from headrace import App, Backoff, Cancel, Done, Fail, GatherContext, JobHandle, Retry, Snooze
from headrace.engine import operations
from headrace.model.errors import InvalidInputError, JobFailedError
from headrace.model.gathering import LEAST_PATIENCE, Gather, Pace
from headrace.model.job import JobState
from headrace.settings import QueueSettings, Settings, WorkerSettings
from tests.unit import engine_tasks
from tests.unit.engine_app import crash_with, quick_app, until_final, until_state, view_of
from tests.waiting import wait_until

S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


class Calls:
    """A gathering handler that notes its calls, and may be held or told how to end."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.seen: list[list[int]] = []
        self.held = asyncio.Event()
        self.held.set()
        self.begun = asyncio.Event()
        self.end: Callable[[int], Any] = lambda number: number * 10

    async def __call__(self, numbers: list[int]) -> list[Any]:
        """Answer each number."""
        self.sizes.append(len(numbers))
        self.seen.append(numbers)
        self.begun.set()
        await self.held.wait()
        return [self.end(number) for number in numbers]


@pytest.fixture
async def calls() -> Calls:
    """Return a handler's notes."""
    return Calls()


def app_with(calls: Calls, **options: Any) -> App:
    """Return an app with the task `work`."""
    app = quick_app()
    chosen: dict[str, Any] = {"batch_size": 10, "max_wait": "5s", "retry": Backoff.none(), **options}

    @app.task(**chosen)
    async def work(numbers: list[int]) -> list[int]:
        return await calls(numbers)

    return app


async def enqueue(app: App, *numbers: int, **options: Any) -> list[JobHandle[Any]]:
    """Enqueue a job per number."""
    return await app.find_task("work").options(**options).enqueue_many(numbers)


async def test_waiting_jobs_go_into_full_calls(calls: Calls) -> None:
    """A backlog is called in full gathers, in order, and each job gets its own entry of the answer."""
    app = app_with(calls)
    async with app:
        handles = await enqueue(app, *range(100))
        async with app.worker():
            assert await asyncio.gather(*(handle.result(20) for handle in handles)) == [10 * n for n in range(100)]
    assert calls.sizes == [10] * 10
    assert calls.seen[0] == list(range(10))


async def test_items_of_a_batch_are_gathered_like_single_jobs(calls: Calls) -> None:
    """`submit` takes one entry per item; the results come as items of the batch."""
    app = app_with(calls)
    async with app.worker():
        batch = await app.submit(app.find_task("work"), range(25))
        results = {item.index: item.result async for item in batch.results()}
    assert results == {number: number * 10 for number in range(25)}
    assert len(calls.sizes) <= 4


async def test_what_is_left_over_does_not_wait_for_long(calls: Calls) -> None:
    """The end of a backlog is called as soon as nothing more comes, far within the longest wait."""
    app = app_with(calls)
    loop = asyncio.get_running_loop()
    async with app:
        handles = await enqueue(app, *range(13))
        began = loop.time()
        async with app.worker():
            await asyncio.gather(*(handle.result(20) for handle in handles))
    assert calls.sizes == [10, 3]
    assert loop.time() - began < 2.5


async def test_a_lone_job_on_an_idle_queue_is_called_at_once(calls: Calls) -> None:
    """Where nothing else has come for long, nothing is waited for."""
    app = app_with(calls)
    loop = asyncio.get_running_loop()
    async with app.worker():
        began = loop.time()
        [handle] = await enqueue(app, 7)
        assert await handle.result(20) == 70
        assert loop.time() - began < 2.5
    assert calls.sizes == [1]


async def test_jobs_that_trickle_in_wait_for_each_other(calls: Calls) -> None:
    """Jobs that come one by one, each soon after the other, are gathered up to the longest wait."""
    app = app_with(calls, max_wait="300ms", batch_size=1000)
    async with app.worker():
        handles = []
        for number in range(40):
            handles += await enqueue(app, number)
            await asyncio.sleep(0.005)
        await asyncio.gather(*(handle.result(20) for handle in handles))
    assert sum(calls.sizes) == 40
    assert len(calls.sizes) <= 8


async def test_a_gather_does_not_wait_beyond_its_slots(calls: Calls) -> None:
    """Where all slots are taken nothing more can come: the call begins with those it has."""
    app = app_with(calls)
    loop = asyncio.get_running_loop()
    async with app:
        handles = await enqueue(app, *range(12))
        began = loop.time()
        async with app.worker(queues={"default": 4}):
            await asyncio.gather(*(handle.result(20) for handle in handles))
        assert loop.time() - began < 2.5
    assert calls.sizes == [4, 4, 4]


async def test_a_worker_has_slots_for_two_gathers(calls: Calls) -> None:
    """A queue of gathering tasks has twice the largest batch size unless slots are given by name."""
    app = app_with(calls)
    app.task(batch_size=100, name="more", queue="more")(_echo)

    async with app.worker(concurrency=5) as worker:
        assert worker.session is not None
        assert worker.session.queues == {"default": 20, "more": 200}
    async with app.worker(concurrency=50, queues=["default"]) as worker:
        assert worker.session is not None
        assert worker.session.queues == {"default": 50}


async def _echo(numbers: list[int]) -> list[int]:
    return numbers


async def test_each_entry_ends_its_own_job(calls: Calls) -> None:
    """Values, outcomes and exceptions of one answer end each job by itself."""
    endings = {0: 5, 1: Done(6), 2: Fail("no"), 3: Cancel("enough"), 4: Snooze("1h"), 5: ValueError("bad 5"), 6: None}
    calls.end = endings.__getitem__
    app = app_with(calls)
    async with app:
        handles = await enqueue(app, *endings)
        async with app.worker():
            states = [await until_state(app, handle, S, F, C, JobState.SCHEDULED) for handle in handles]
    assert calls.sizes == [7]
    assert [view.state for view in states] == [S, S, F, C, JobState.SCHEDULED, F, S]
    assert [view.result for view in states] == [5, 6, None, None, None, None, None]
    assert [view.error and view.error.kind for view in states[2:6]] == ["failed", "cancelled", None, "ValueError"]
    assert states[5].error is not None
    assert states[5].error.message == "bad 5"


async def test_only_what_failed_runs_again(calls: Calls) -> None:
    """A job whose entry is an error, or asks for a retry, runs again by its own policy; the others are done."""
    tried: list[int] = []

    def end(number: int) -> Any:
        tried.append(number)
        again = tried.count(number) == 1
        return ValueError("first") if number == 3 and again else Retry(delay="1ms") if number == 5 and again else number

    calls.end = end
    app = app_with(calls, retry=Backoff.fixed("1ms", max_attempts=3))
    async with app:
        handles = await enqueue(app, *range(8))
        async with app.worker():
            views = [await until_final(app, handle) for handle in handles]
    assert [view.state for view in views] == [S] * 8
    assert [view.attempt for view in views] == [1, 1, 1, 2, 1, 2, 1, 1]
    assert sorted(tried) == sorted([*range(8), 3, 5])


async def test_an_exception_fails_all_of_the_call_each_by_its_policy(calls: Calls) -> None:
    """A handler that raises fails every job of the call once, with the trace as it was."""

    def end(number: int) -> Any:
        raise ValueError(f"broke at {number}")

    calls.end = end
    app = app_with(calls, retry=Backoff.fixed("1ms", max_attempts=2))
    async with app:
        handles = await enqueue(app, *range(5))
        async with app.worker():
            views = [await until_final(app, handle) for handle in handles]
    assert [(view.state, view.failures) for view in views] == [(F, 2)] * 5
    traces = {view.error.trace for view in views if view.error is not None}
    assert len(traces) == 1, "the trace grew from job to job"
    assert "in end" in traces.pop()


@pytest.mark.parametrize(("answer", "got"), [([1], "a list of 1"), (None, "a NoneType"), ({0: 1}, "a dict")])
async def test_a_wrong_answer_fails_all_of_the_call_and_says_what_is_wrong(answer: Any, got: str) -> None:
    """Anything but one entry per job is an error that names task, number and what came, and is retried."""
    app = quick_app()

    @app.task(batch_size=10, retry=Backoff.fixed("1ms", max_attempts=2))
    async def work(numbers: list[int]) -> list[int]:
        return answer  # type: ignore[no-any-return]

    async with app:
        handles = await work.enqueue_many([1, 2, 3])
        async with app.worker():
            views = [await until_final(app, handle) for handle in handles]
    for view in views:
        assert (view.state, view.failures) == (F, 2)
        assert view.error is not None
        assert view.error.kind == "wrong_answer"
        assert f"task 'work' was called for 3 jobs and returned {got}" in view.error.message


async def test_a_job_whose_entry_cannot_be_read_fails_alone(calls: Calls) -> None:
    """An argument that does not fit the type of the list's entries fails its own job, and is not in the call."""
    app = quick_app()

    @app.task(batch_size=10, retry=Backoff.none(), name="work")
    async def before(days: list[str]) -> list[int]:
        return []

    async with app:
        handles = await before.enqueue_many(["2026-01-01", "no day", "2026-01-03"])
        app.registry._tasks.clear()

        @app.task(batch_size=10, retry=Backoff.none())
        async def work(days: list[datetime]) -> list[int]:
            return [day.day for day in days]

        async with app.worker():
            views = [await until_final(app, handle) for handle in handles]
    assert [(view.state, view.result) for view in views] == [(S, 1), (F, None), (S, 3)]


@dataclass
class Text:
    """An entry that is not plain JSON."""

    words: str


async def test_entries_and_results_are_typed(calls: Calls) -> None:
    """Arguments and results of one entry are turned from and to the types of the lists."""
    app = quick_app()

    @app.task(batch_size=10)
    async def work(texts: list[Text]) -> list[timedelta]:
        assert all(isinstance(text, Text) for text in texts)
        return [timedelta(seconds=len(text.words)) for text in texts]

    async with app.worker():
        handles = await work.enqueue_many([Text("ab"), Text("abc")])
        assert [await handle.result(20) for handle in handles] == [timedelta(seconds=2), timedelta(seconds=3)]
    assert await work([Text("a")]) == [timedelta(seconds=1)]


async def test_a_sync_handler_is_called_in_a_thread_with_its_context(calls: Calls) -> None:
    """A `def` handler gathers too, off the event loop, and may ask for the context of the call."""

    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[str]:
        yield "model"

    app, seen = quick_app(lifespan=lifespan), []

    @app.task(batch_size=10)
    def work(numbers: list[int], ctx: GatherContext) -> list[int]:
        seen.append((threading.current_thread() is threading.main_thread(), ctx.resources, len(ctx.job_ids)))
        ctx.progress("half way")
        return numbers

    async with app:
        handles = await work.enqueue_many(range(10))
        async with app.worker():
            assert [await handle.result(20) for handle in handles] == list(range(10))
    assert seen == [(False, "model", 10)]


async def test_the_call_has_the_timeout_of_its_task(calls: Calls) -> None:
    """A call that takes too long is stopped, and fails all its jobs with a word on it."""
    calls.held.clear()
    app = app_with(calls, timeout="100ms")
    async with app:
        handles = await enqueue(app, 1, 2, 3)
        async with app.worker():
            views = [await until_final(app, handle) for handle in handles]
    for view in views:
        assert view.error is not None
        assert view.error.kind == "timeout"
        assert "the call for 3 jobs ran longer than 0.1 s" in view.error.message


async def test_activity_renews_the_stall_timer_of_all(calls: Calls) -> None:
    """`ctx.progress()` keeps every job of the call alive; a call that is silent for too long is stopped."""
    app = quick_app()

    @app.task(batch_size=10, max_wait="10ms", stall_timeout="300ms", retry=Backoff.none())
    async def work(numbers: list[float], ctx: GatherContext) -> list[float]:
        for _ in range(5):
            await asyncio.sleep(numbers[0])
            ctx.progress()
        return numbers

    async with app:
        lively = await work.enqueue_many([0.1, 0.1])
        async with app.worker():
            assert [await handle.result(20) for handle in lively] == [0.1, 0.1]
            silent = await work.enqueue_many([5.0, 5.0])
            views = [await until_final(app, handle) for handle in silent]
    assert [view.error and view.error.kind for view in views] == ["timeout", "timeout"]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let gathers wait for their longest, whatever the pace."""
    monkeypatch.setattr(Pace, "patience", property(lambda self: self._longest))


async def test_a_cancelled_job_leaves_a_gather_that_has_not_begun(calls: Calls, patient: None) -> None:
    """It is cancelled and not in the call; the others go on waiting."""
    app = app_with(calls, max_wait="1s", batch_size=50)
    async with app.worker() as worker:
        gone, stays = await enqueue(app, 1, 2)
        assert worker.session is not None
        [first] = await _hold_in_gather(app, worker, calls, gone)
        assert first.state is JobState.RUNNING
        worker.session._cancel((gone.id,))  # type: ignore[union-attr]
        assert (await until_final(app, gone)).state is C
        assert await stays.result(20) == 20
    assert all(1 not in numbers for numbers in calls.seen)


async def _hold_in_gather(app: App, worker: Any, calls: Calls, *jobs: JobHandle[Any]) -> list[Any]:
    """Wait until jobs run, in a gather that still waits."""
    views = [await until_state(app, job, JobState.RUNNING) for job in jobs]
    fences = [(view.id, view.attempt) for view in views]
    await wait_until(lambda: all(fence in worker.session._attempts for fence in fences))
    assert not any(worker.session._factory.gatherings.has_begun(fence) for fence in fences)
    return views


async def test_a_job_cancelled_while_its_call_runs_leaves_the_others_be(calls: Calls) -> None:
    """Its entry is dropped and the job cancelled; the call ends for the others. A call that all left is stopped."""
    calls.held.clear()
    app = app_with(calls)
    async with app:
        gone, stays = await enqueue(app, 1, 2)
        async with app.worker() as worker:
            await asyncio.wait_for(calls.begun.wait(), 10)
            worker.session._cancel((gone.id,))  # type: ignore[union-attr]
            assert (await until_final(app, gone)).state is C
            calls.held.set()
            assert await stays.result(20) == 20
            calls.held.clear()
            calls.begun.clear()
            last = await enqueue(app, 3, 4)
            await asyncio.wait_for(calls.begun.wait(), 10)
            worker.session._cancel(tuple(job.id for job in last))  # type: ignore[union-attr]
            assert [(await until_final(app, job)).state for job in last] == [C, C]
            assert not calls.held.is_set()


async def test_a_shutdown_releases_a_waiting_gather_uncharged(calls: Calls, patient: None) -> None:
    """Jobs whose call has not begun go back at once, as they were; those whose call runs may end within the grace."""
    app = app_with(calls, max_wait="5s", batch_size=50)
    loop = asyncio.get_running_loop()
    async with app:
        handles = await enqueue(app, 1, 2)
        async with app.worker(grace=10) as worker:
            await _hold_in_gather(app, worker, calls, *handles)
            began = loop.time()
        assert loop.time() - began < 2.5
        views = [await view_of(app, handle) for handle in handles]
        assert [(view.state, view.failures, view.crashes) for view in views] == [(JobState.READY, 0, 0)] * 2
        assert calls.sizes == []


async def test_a_call_that_runs_may_end_within_the_grace(calls: Calls) -> None:
    """At a shutdown the jobs of a running call are recorded when it ends in time."""
    calls.held.clear()
    app = app_with(calls)
    async with app:
        handles = await enqueue(app, 1, 2)
        async with app.worker(grace=10):
            await asyncio.wait_for(calls.begun.wait(), 10)
            asyncio.get_running_loop().call_later(0.1, calls.held.set)
        assert [(await view_of(app, handle)).state for handle in handles] == [S, S]


async def test_a_cancelled_job_that_was_asked_for_by_an_operator(calls: Calls) -> None:
    """`job cancel` reaches a job in a running call by the heartbeat, like any other."""
    calls.held.clear()
    app = app_with(calls)
    async with app:
        gone, stays = await enqueue(app, 1, 2)
        async with app.worker():
            await asyncio.wait_for(calls.begun.wait(), 10)
            await operations.cancel_job(app.runtime.stores, gone.id)
            assert (await until_final(app, gone)).state is C
            calls.held.set()
            assert await stays.result(20) == 20


async def test_a_suspect_is_called_alone_in_a_child(calls: Calls) -> None:
    """A job that was running in two crashes takes no neighbours with it: it runs alone, with a list of one."""
    app = engine_tasks.app
    async with app:
        [suspect] = await engine_tasks.pids.enqueue_many([1])
        await crash_with(app, suspect, queue="pids")
        await crash_with(app, suspect, queue="pids")
        others = await engine_tasks.pids.enqueue_many([2, 3])
        async with app.worker(queues=["pids"]):
            answers = [await handle.result(30) for handle in (suspect, *others)]
    assert answers[0][0] != os.getpid()
    assert answers[0][1] == 1
    assert {pid for pid, _ in answers[1:]} == {os.getpid()}


async def test_a_call_costs_its_overhead_once(calls: Calls) -> None:
    """What each call of a handler costs is paid once for many jobs: gathered work is several times faster."""

    async def seconds(**options: Any) -> float:
        app = App(
            settings=Settings(queue=QueueSettings(type="memory"), worker=replace(WorkerSettings(), concurrency=100))
        )
        spent = 0.0

        def pay() -> None:
            nonlocal spent
            spent += 0.0001

        if options:

            @app.task(**options)
            async def work(numbers: list[int]) -> list[int]:
                pay()
                return numbers

        else:

            @app.task
            async def work(numbers: int) -> int:  # type: ignore[misc]
                pay()
                return numbers

        async with app:
            batch = await app.submit(app.find_task("work"), range(1_000))
            async with app.worker():
                await batch.wait(30)
        return spent

    alone, gathered = await seconds(), await seconds(batch_size=50)
    assert gathered <= alone / 25


# Declaring


def two(numbers: list[int], more: list[int]) -> list[int]:
    """Take too much."""
    return numbers + more


def many(*numbers: list[int]) -> list[int]:
    """Take anything."""
    return [1]


def one(number: int) -> list[int]:
    """Take no list."""
    return [number]


def total(numbers: list[int]) -> int:
    """Return no list."""
    return sum(numbers)


def entries(numbers: list[int]) -> list[int]:
    """Fit."""
    return numbers


@pytest.mark.parametrize(
    ("function", "options", "words"),
    [
        (two, {"batch_size": 5}, "takes one list"),
        (many, {"batch_size": 5}, "takes one list"),
        (one, {"batch_size": 5}, "its argument number must be a list"),
        (total, {"batch_size": 5}, "what it returns must be a list"),
        (entries, {"batch_size": 0}, "batch_size must be a whole number"),
        (entries, {"batch_size": 5, "max_wait": "1m"}, "max_wait must be at most 5 s"),
        (entries, {"max_wait": "1s"}, "max_wait goes with batch_size"),
        (entries, {"batch_size": 5, "cpu": True}, "cannot go with batch_size"),
        (entries, {"batch_size": 5, "max_wait": "1s", "stall_timeout": "1s"}, "must be longer than max_wait"),
    ],
)
def test_a_task_that_cannot_gather_is_refused(function: Any, options: dict[str, Any], words: str) -> None:
    """A wrong signature or option is refused where the task is declared, with the rule."""
    with pytest.raises(InvalidInputError, match=words):
        App("memory://").task(**options)(function)


# The pace


def test_patience_follows_the_usual_gap() -> None:
    """Dense jobs are waited for a few of their gaps, never beyond the longest wait; after a pause not at all."""
    pace = Pace(longest=0.1)
    assert pace.patience == 0
    now = 0.0
    for _ in range(20):
        pace.note(now)
        now += 0.01
    assert pace.patience == pytest.approx(0.04)
    pace.note(now + 5)
    assert pace.patience == 0
    for _ in range(2):
        pace.note(now + 5)
    assert 0 < pace.patience <= 0.1
    for _ in range(20):
        pace.note(now + 5)
    assert pace.patience == LEAST_PATIENCE


def test_a_gather_is_checked() -> None:
    """Its values are read as people write them."""
    assert Gather.parse(5, "50ms") == Gather(5, timedelta(milliseconds=50))


async def test_results_of_failed_jobs_raise(calls: Calls) -> None:
    """A handle on a gathered job raises as for any other job."""
    calls.end = lambda number: ValueError("no")
    app = app_with(calls)
    async with app.worker():
        [handle] = await enqueue(app, 1)
        with pytest.raises(JobFailedError):
            await handle.result(20)
