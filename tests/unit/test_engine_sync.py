"""`app.sync`: coroutines from scripts, from sync handlers, and after a fork."""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import pytest

from headrace import App
from headrace.model.errors import ConfigError, InvalidInputError, JobFailedError
from headrace.model.job import JobState
from tests.unit.engine_app import quick_app, run_one


@pytest.fixture
def app() -> Iterator[App]:
    """Return an app with a task; what `app.sync` opened is closed at the end."""
    app = quick_app()

    @app.task
    async def double(number: int) -> int:
        return 2 * number

    yield app
    app.sync.close()


def sync_threads() -> set[threading.Thread]:
    """Return the threads that `app.sync` runs."""
    return {thread for thread in threading.enumerate() if thread.name == "headrace-sync"}


def test_a_script_enqueues_and_reads(app: App) -> None:
    """From plain synchronous code: enqueue, look, submit, wait; the app is opened on first use."""
    double = app.find_task("double")
    assert not app.is_open
    job = app.sync(double.enqueue(21))
    assert app.sync(job.status()) is JobState.READY
    assert app.sync(run_one(app, job)).result == 42
    batch = app.sync(app.submit(double, [1, 2, 3]))
    assert app.sync(batch.progress()).waiting == 3


def test_an_async_iterator_is_iterated(app: App) -> None:
    """`app.sync.iterate` yields the items of an async iterator as they come."""

    async def work() -> Any:
        async with app.worker():
            batch = await app.submit(app.find_task("double"), [1, 2, 3])
            await batch.wait(10)
        return batch

    app.sync(_nothing())
    batch = app.sync(work())
    assert sorted(item.result for item in app.sync.iterate(batch.results())) == [2, 4, 6]


async def _nothing() -> None:
    return None


def test_exceptions_pass_through(app: App) -> None:
    """What a coroutine raises is raised in the caller."""
    with pytest.raises(InvalidInputError, match="do not fit"):
        app.sync(app.find_task("double").enqueue())


def test_closing_ends_the_thread_and_the_next_call_begins_anew(app: App) -> None:
    """`close` may be called twice, and before any call; afterwards the app can be used again."""
    app.sync.close()
    for _ in range(3):
        before = sync_threads()
        app.sync(app.find_task("double").enqueue(1))
        [own] = sync_threads() - before
        app.sync.close()
        app.sync.close()
        own.join(20)
        assert (own.is_alive(), app.is_open) == (False, False)


def test_many_threads_share_one_loop(app: App) -> None:
    """Threads of a web server may all use `app.sync` at once, from the first call on."""
    ids: list[Any] = []
    before = sync_threads()

    def call(number: int) -> None:
        ids.append(app.sync(app.find_task("double").enqueue(number)).id)

    threads = [threading.Thread(target=call, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert len(set(ids)) == 16
    assert len(sync_threads() - before) == 1


async def test_on_an_event_loop_it_is_refused(app: App) -> None:
    """`app.sync` on an event loop would block it: the error says to await instead, and nothing is enqueued."""
    async with app:
        with pytest.raises(ConfigError, match="await"):
            app.sync(app.find_task("double").enqueue(1))
        assert await app.runtime.stores.inspect.list_jobs() == []


async def test_a_sync_handler_uses_the_connections_of_its_worker(app: App) -> None:
    """In a sync handler `app.sync` runs on the worker's own loop: no second store, no further thread."""
    before = sync_threads()

    @app.task
    def spawn(number: int) -> str:
        return str(app.sync(app.find_task("double").enqueue(number)).id)

    @app.task
    def chain(number: int) -> Any:
        return app.sync(app.sync(app.find_task("double").enqueue(number)).result(10))

    async with app.worker():
        spawned = await (await spawn.enqueue(4)).result(10)
        assert await app.job(spawned).result(10) == 8
        assert await (await chain.enqueue(5)).result(10) == 10
    assert sync_threads() <= before


async def test_an_app_open_on_the_thread_of_sync_is_not_opened_elsewhere(app: App) -> None:
    """A script that used `app.sync` and then starts an event loop is told, instead of mixing two loops."""
    await asyncio.to_thread(lambda: app.sync(app.find_task("double").enqueue(1)))
    with pytest.raises(ConfigError, match="another event loop"):
        async with app:
            raise AssertionError("unreachable")
    await asyncio.to_thread(app.sync.close)
    async with app:
        assert app.is_open


def in_fork(work: Callable[[], Any]) -> Any:
    """Run `work` in a forked child and return its result, or raise what went wrong there."""

    def child(pipe: Connection) -> None:
        try:
            pipe.send(("returned", work()))
        except BaseException as error:
            pipe.send(("raised", repr(error)))

    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=child, args=(sender,), daemon=True)
    process.start()
    try:
        assert receiver.poll(20), "the forked child hangs"
        how, value = receiver.recv()
    finally:
        process.kill()
        process.join()
    assert how == "returned", value
    return value


def enqueue_one(app: App) -> tuple[str, int, int]:
    """Enqueue from a fork: return the state, how many jobs it sees, and how many threads serve it."""
    job = app.sync(app.find_task("double").enqueue(1))
    jobs = app.sync(_all_jobs(app))
    return app.sync(job.status()).value, jobs, len(sync_threads())


async def _all_jobs(app: App) -> int:
    return len(await app.runtime.stores.inspect.list_jobs())


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_after_a_fork_the_child_begins_anew(app: App) -> None:
    """A forked child of a process that used `app.sync` gets a loop and a store of its own; the parent keeps its own."""
    app.sync(app.find_task("double").enqueue(1))
    # A memory store of its own: the parent's job is not in it.
    assert in_fork(lambda: enqueue_one(app)) == ("ready", 1, 1)
    assert app.sync(_all_jobs(app)) == 1


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_fork_before_the_first_use_is_no_matter(app: App) -> None:
    """A server that forks its workers before any of them used the app works as well."""
    assert in_fork(lambda: enqueue_one(app)) == ("ready", 1, 1)
    assert not app.is_open


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
async def test_a_fork_of_a_running_worker_uses_nothing_of_it(app: App) -> None:
    """A child forked while the app is open on an event loop does not wait for that loop, which is not there."""

    @app.task
    def forking() -> list[Any]:
        return list(in_fork(lambda: enqueue_one(app)))

    async with app.worker():
        assert await (await forking.enqueue()).result(30) == ["ready", 1, 1]


def test_a_loop_that_ended_is_forgotten(app: App) -> None:
    """An app that was left open by a loop which has ended can be opened again."""

    async def leave_open() -> None:
        await app.__aenter__()

    asyncio.run(leave_open())
    assert app.sync(app.sync(app.find_task("double").enqueue(1)).status()) is JobState.READY


def test_a_failed_job_raises_in_the_script(app: App) -> None:
    """`app.sync(job.result())` raises the error of a failed job."""

    @app.task
    async def fail() -> None:
        raise PermissionError("no")

    async def work() -> None:
        async with app.worker():
            await (await fail.options(max_attempts=1).enqueue()).result(10)

    app.sync(_nothing())
    with pytest.raises(JobFailedError, match="PermissionError: no"):
        app.sync(work())
