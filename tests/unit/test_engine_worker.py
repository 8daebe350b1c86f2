"""The worker: its life, its slots and caps, its resources, and how it stops."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Context
from headrace.engine import shift
from headrace.engine.loops.leadership import Leadership
from headrace.engine.registry import RunsIn
from headrace.engine.worker import Worker
from headrace.model.errors import ConfigError, InvalidInputError
from headrace.model.ids import uuid7
from headrace.model.job import JobState
from headrace.ports.executor import Call
from headrace.wiring import make_worker
from tests.unit.engine_app import QUICK, quick_app, shift_of, until_final, until_state, view_of
from tests.waiting import wait_until

NOW = timedelta()


class Gate:
    """Handlers that wait until they are let go."""

    def __init__(self, app: App) -> None:
        self.open = asyncio.Event()
        self.running = 0
        self.most = 0
        self.task = app.task(name="wait", concurrency=None)(self.wait)

    async def wait(self) -> str:
        """Wait for the gate."""
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            await self.open.wait()
        finally:
            self.running -= 1
        return "let go"


async def test_a_stopping_worker_lets_handlers_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within the grace time running handlers end and are recorded; what waits is not claimed any more."""
    app = quick_app()
    gate = Gate(app)
    async with app:
        async with app.worker(concurrency=1, grace=20) as worker:
            jobs = [await gate.task.enqueue() for _ in range(3)]
            await wait_until(lambda: gate.running)
            stopping = asyncio.ensure_future(worker.stop(timedelta(seconds=20)))
            await wait_until(lambda: worker.session is None)
            gate.open.set()
            await stopping
        views = [await view_of(app, job) for job in jobs]
    assert [view.state for view in views] == [JobState.SUCCEEDED, JobState.READY, JobState.READY]
    assert [view.attempt for view in views] == [1, 0, 0]


async def test_nothing_is_claimed_while_a_worker_ends_its_loops() -> None:
    """From the moment it is told to stop a slot that becomes free stays so, however long its loops take to end."""
    app = quick_app()
    gate = Gate(app)

    class Slow:
        async def stop(self) -> None:
            gate.open.set()
            await until_final(app, jobs[0])

    async with app:
        async with app.worker(concurrency=1, grace=20) as worker:
            jobs = [await gate.task.enqueue() for _ in range(3)]
            await wait_until(lambda: gate.running)
            worker._loops.insert(0, Slow())  # type: ignore[arg-type]
            await worker.stop(timedelta(seconds=20))
            worker._loops.pop(0)
        views = [await view_of(app, job) for job in jobs]
    assert [view.attempt for view in views] == [1, 0, 0]


class Closed:
    """An executor that notes when it is closed."""

    def __init__(self, worker: Worker, said: list[str]) -> None:
        self._inner, self._said = worker._factory.executors[RunsIn.LOOP], said
        worker._factory.executors[RunsIn.LOOP] = self

    async def run(self, call: Call) -> Any:
        """Run it as the other would."""
        return await self._inner.run(call)

    async def close(self) -> None:
        """Note it."""
        self._said.append("closed")


async def test_executors_are_closed_once_all_has_ended_that_uses_them() -> None:
    """Also what ends beside the worker, however long that takes."""
    app, said = quick_app(), list[str]()
    gate = Gate(app)
    stopped = asyncio.Event()

    async def others() -> None:
        await stopped.wait()
        said.append("others")

    async with app, app.worker(grace=20) as worker:
        Closed(worker, said)
        await gate.task.enqueue()
        await wait_until(lambda: gate.running)
        stopping = asyncio.ensure_future(worker.stop(timedelta(seconds=20), beside=others()))
        gate.open.set()
        await wait_until(lambda: worker.session is None and not gate.running)
        assert said == []
        stopped.set()
        await stopping
        assert said == ["others", "closed"]


async def test_what_fails_beside_a_stopping_worker_takes_no_handler_along() -> None:
    """It is raised once handlers have ended within their grace, and executors are closed."""
    app, said = quick_app(), list[str]()
    gate = Gate(app)

    async def others() -> None:
        raise ValueError("cannot say goodbye")

    async with app, app.worker(grace=20) as worker:
        Closed(worker, said)
        job = await gate.task.enqueue()
        await wait_until(lambda: gate.running)
        stopping = asyncio.ensure_future(worker.stop(timedelta(seconds=20), beside=others()))
        await wait_until(lambda: worker.session is None)
        assert said == []
        gate.open.set()
        with pytest.raises(ValueError, match="goodbye"):
            await stopping
        assert (await view_of(app, job)).state is JobState.SUCCEEDED
        assert said == ["closed"]


async def test_a_stopping_leader_hands_over_at_once() -> None:
    """A worker that waits for its handlers leads no more: another can do what a leader does meanwhile."""
    app = quick_app()
    gate = Gate(app)
    async with app, app.worker(grace=20) as worker:
        await gate.task.enqueue()
        await wait_until(lambda: gate.running and worker._leadership.term)
        stopping = asyncio.ensure_future(worker.stop(timedelta(seconds=20)))
        heir = Leadership(app.runtime.stores, uuid7())

        async def leads() -> bool:
            await heir.step()
            return heir.term is not None

        await wait_until(leads)
        assert gate.running == 1
        gate.open.set()
        await stopping


async def test_after_the_grace_jobs_are_released_uncharged() -> None:
    """What did not end in time is stopped and ready again, with no failure and no crash counted, in any executor."""
    app = quick_app()
    gate = Gate(app)
    told, let_go = threading.Event(), threading.Event()

    @app.task
    def in_thread(ctx: Context) -> None:
        told.set()
        let_go.wait(20)

    async with app:
        async with app.worker(grace=0):
            jobs: list[Any] = [await gate.task.enqueue(), await in_thread.enqueue()]
            await wait_until(lambda: gate.running and told.is_set())
        let_go.set()
        views = [await view_of(app, job) for job in jobs]
        assert [(view.state, view.attempt, view.failures, view.crashes) for view in views] == [
            (JobState.READY, 1, 0, 0)
        ] * 2
        gate.open.set()
        async with app.worker():
            assert await jobs[0].result(10) == "let go"
        assert (await view_of(app, jobs[0])).attempt == 2


async def test_an_at_most_once_job_is_failed_rather_than_released() -> None:
    """A worker that stops in the middle of an at-most-once job fails it: another run could repeat its effect."""
    app = quick_app()
    started = asyncio.Event()

    @app.task(delivery="at_most_once")
    async def pay() -> None:
        started.set()
        await asyncio.Event().wait()

    async with app:
        async with app.worker(grace=0):
            job = await pay.enqueue()
            await started.wait()
        view = await view_of(app, job)
    assert view.error is not None
    assert (view.state, view.error.kind) == (JobState.FAILED, "worker_lost")


async def test_a_handler_that_ignores_its_stop_does_not_hold_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A coroutine that swallows its cancellation is left behind, and its job is released for others."""
    monkeypatch.setattr(shift, "DRAIN_SECONDS", 0.1)
    app = quick_app()
    started, end = asyncio.Event(), asyncio.Event()

    @app.task
    async def deaf() -> None:
        started.set()
        while not end.is_set():
            try:
                await end.wait()
            except asyncio.CancelledError:
                continue

    async with app:
        async with app.worker(grace=0):
            job = await deaf.enqueue()
            await started.wait()
        view = await view_of(app, job)
        end.set()
        assert (view.state, view.failures) == (JobState.READY, 0)


STUCK_THREAD = """
import asyncio, threading
from headrace import App
app = App("memory://")
entered = threading.Event()
@app.task
def stuck():
    entered.set()
    threading.Event().wait()
async def main():
    async with app.worker(grace=0):
        await stuck.enqueue()
        while not entered.is_set():
            await asyncio.sleep(0.01)
asyncio.run(main())
print("ended")
"""


def test_a_script_ends_although_a_handler_thread_does_not() -> None:
    """Python waits for no thread of a handler: a process whose worker has stopped can exit."""
    ended = subprocess.run([sys.executable, "-c", STUCK_THREAD], capture_output=True, text=True, timeout=40, check=True)
    assert ended.stdout == "ended\n"


async def test_a_worker_starts_and_stops_in_any_order() -> None:
    """Fifty times: stop without start, start twice, stop twice; nothing is left running, and jobs run in between."""
    app = quick_app()
    task = app.task(name="one")(lambda: 1)
    before = asyncio.all_tasks()
    async with app:
        for number in range(50):
            worker = make_worker(app, {"default": 1}, None)
            await worker.stop(NOW)
            await worker.start()
            await worker.start()
            if number % 10 == 0:
                assert await (await task.enqueue()).result(10) == 1
            await worker.stop(NOW)
            await worker.stop(NOW)
        sessions = await app.runtime.stores.inspect.list_sessions()
    assert (len(sessions), [session for session in sessions if session.alive]) == (50, [])
    await wait_until(lambda: asyncio.all_tasks() == before)


async def test_a_stopped_worker_can_start_again() -> None:
    """A worker that was stopped starts a fresh session and works on, in every executor."""
    app = quick_app()
    tasks = [app.task(name="sync")(lambda: 1), app.task(name="async")(_two)]
    async with app:
        worker = make_worker(app, {"default": 1}, None)
        sessions = set()
        for _ in range(3):
            await worker.start()
            sessions.add(shift_of(worker).id)
            assert [await (await task.enqueue()).result(10) for task in tasks] == [1, 2]
            await worker.stop(NOW)
    assert len(sessions) == 3


async def _two() -> int:
    return 2


async def test_stopping_at_any_moment_leaves_no_job_behind() -> None:
    """Workers that stop while they claim, run and record leave every job either ended or ready, never running."""
    app = quick_app()
    runs: list[int] = []

    @app.task
    async def work(number: int) -> int:
        await asyncio.sleep(0)
        runs.append(number)
        return number

    async with app:
        batch = await app.submit(work, range(300))
        rounds = 0
        while (await batch.progress()).done < 300:
            rounds += 1
            worker = make_worker(app, {"default": 7}, None)
            await worker.start()
            for _ in range(rounds % 23):
                await asyncio.sleep(0)
            await worker.stop(NOW)
            assert (await batch.progress()).running == 0
        results = {item.index: item.result async for item in batch.results()}
    assert results == {number: number for number in range(300)}
    assert rounds > 5


async def test_resources_come_from_the_lifespan() -> None:
    """Each worker enters the app's lifespan once, hands what it yields to its handlers, and leaves it at its end."""
    events: list[str] = []

    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[dict[str, str]]:
        events.append("enter")
        assert app.is_open
        yield {"greeting": "hello"}
        assert app.is_open
        events.append("leave")

    app = quick_app(lifespan=lifespan)

    @app.task
    async def greet(name: str, ctx: Context) -> str:
        return f"{ctx.resources['greeting']} {name}"

    @app.task
    def greet_from_thread(ctx: Context) -> str:
        return str(ctx.resources["greeting"])

    async with app:
        assert events == []
        async with app.worker():
            assert await (await greet.enqueue("you")).result(10) == "hello you"
            assert await (await greet_from_thread.enqueue()).result(10) == "hello"
            assert events == ["enter"]
    assert events == ["enter", "leave"]


async def test_a_lifespan_that_fails_starts_no_worker() -> None:
    """An error while resources are made reaches the caller, no session is registered, and the app is closed again."""

    @asynccontextmanager
    async def lifespan(app: App) -> AsyncIterator[None]:
        raise RuntimeError("no database")
        yield

    app = quick_app(lifespan=lifespan)
    app.task(name="one")(lambda: 1)
    async with app:
        with pytest.raises(RuntimeError, match="no database"):
            async with app.worker():
                raise AssertionError("unreachable")
        assert await app.runtime.stores.inspect.list_sessions() == []
    assert not app.is_open


async def test_settings_reach_the_worker() -> None:
    """Concurrency, lease and limits of the settings are those of the session; what the call names goes before them."""
    settings = replace(
        QUICK,
        queue=replace(QUICK.queue, visibility_timeout=timedelta(seconds=40)),
        worker=replace(QUICK.worker, concurrency=3, batch_size=2, max_processing_time=timedelta(seconds=77)),
    )
    app = quick_app(settings=settings)

    @app.task(queue="a")
    async def left(ctx: Context) -> str:
        return ctx.deadline.isoformat()

    app.task(queue="b", name="right")(lambda: 1)
    async with app:
        for options, queues in (
            ({}, {"a": 3, "b": 3}),
            ({"concurrency": 9}, {"a": 9, "b": 9}),
            ({"queues": ["b"]}, {"b": 3}),
            ({"queues": {"a": 1, "x": 4}}, {"a": 1, "x": 4}),
        ):
            async with app.worker(**options) as worker:  # type: ignore[arg-type]
                assert shift_of(worker).queues == queues
                [session] = [one for one in await app.runtime.stores.inspect.list_sessions() if one.alive]
                assert session.queues == queues
                assert timedelta(seconds=30) < session.expires_at - session.started_at <= timedelta(seconds=41)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"queues": "default"}, "queues"),
        ({"queues": ["No Name"]}, "queue"),
        ({"queues": {"default": 0}}, "concurrency"),
        ({"queues": {"default": "many"}}, "concurrency"),
        ({"concurrency": 0}, "concurrency"),
        ({"concurrency": -1}, "concurrency"),
        ({"grace": "long"}, "grace"),
        ({"grace": -1}, "grace"),
    ],
)
async def test_wrong_options_of_a_worker_are_named(options: dict[str, Any], named: str) -> None:
    """A wrong option is refused by name before anything starts."""
    app = quick_app()
    app.task(name="one")(lambda: 1)
    with pytest.raises(InvalidInputError, match=f"^{named}"):
        async with app.worker(**options):
            raise AssertionError("unreachable")


async def test_a_worker_without_tasks_says_so() -> None:
    """An app without tasks has no queue to work on."""
    with pytest.raises(ConfigError, match=r"@app\.task"):
        async with quick_app().worker():
            raise AssertionError("unreachable")


async def test_a_cap_holds_over_all_workers() -> None:
    """`concurrency=2` lets two of the task's jobs run at once, however many workers and slots there are."""
    app = quick_app()
    gate = Gate(app)
    capped = app.task(name="capped", concurrency=2)(gate.wait)
    free = app.task(name="free")(lambda: "free")
    async with app, app.worker(), app.worker():
        batch = await app.submit(capped, [{}] * 10, spread=True)
        await wait_until(lambda: gate.running == 2)
        assert await (await free.enqueue()).result(10) == "free"
        assert (await batch.progress()).running == 2
        gate.open.set()
        await batch.wait(10)
    assert gate.most == 2


async def test_two_workers_share_the_jobs() -> None:
    """Workers of one app, started together, have one store, and each job runs on one of them."""
    app = quick_app()
    runs: list[int] = []

    @app.task
    async def work(number: int) -> None:
        runs.append(number)
        await asyncio.sleep(0)

    async def work_until(done: asyncio.Event) -> None:
        async with app.worker(concurrency=5):
            await done.wait()

    done = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        workers = [group.create_task(work_until(done)) for _ in range(2)]
        await wait_until(lambda: app.is_open)
        batch = await app.submit(work, range(100))
        await batch.wait(10)
        sessions = await app.runtime.stores.inspect.list_sessions()
        done.set()
    assert (len(workers), len(sessions), sorted(runs)) == (2, 2, list(range(100)))


async def test_an_app_stays_open_for_its_last_user() -> None:
    """Opening an app again inside itself shares what is open; the last one out closes it."""
    app = quick_app()
    async with app:
        runtime = app.runtime
        async with app:
            assert app.runtime is runtime
        assert app.is_open
    assert not app.is_open


async def test_an_app_belongs_to_one_event_loop() -> None:
    """Opening an app that is open on another event loop is refused with the reason, instead of hanging later."""
    app = quick_app()

    async def open_again() -> None:
        async with app:
            raise AssertionError("unreachable")

    async with app:
        with pytest.raises(ConfigError, match="another event loop"):
            await asyncio.to_thread(asyncio.run, open_again())
    assert not app.is_open


async def test_the_worker_reports_what_it_counted() -> None:
    """With its heartbeat a worker sends its counters, so that `headrace workers` can show them."""
    app = quick_app()
    task = app.task(name="one")(lambda: 1)
    async with app, app.worker():
        await until_final(app, await task.enqueue())

        async def counted() -> bool:
            [session] = await app.runtime.stores.inspect.list_sessions()
            return bool(session.stats.get("headrace.jobs.complete") == 1)

        await wait_until(counted)


async def test_a_job_whose_cancel_was_asked_before_its_claim_does_not_run() -> None:
    """A job that is cancelled between its claim and its start ends as cancelled without running."""
    app = quick_app()
    runs: list[int] = []
    task = app.task(name="run")(lambda: runs.append(1))
    async with app:
        job = await task.enqueue()
        claim = app.runtime.stores.jobs.claim_jobs

        async def cancelled_meanwhile(request: Any) -> Any:
            return [replace(claimed, cancel_requested=True) for claimed in await claim(request)]

        app.runtime.stores.jobs.claim_jobs = cancelled_meanwhile  # type: ignore[method-assign]
        async with app.worker():
            view = await until_state(app, job, JobState.CANCELLED)
    assert (runs, view.attempt) == ([], 1)
