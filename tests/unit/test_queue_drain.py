"""Draining a queue: who enqueues is refused within a second, what was accepted runs to its end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from headrace import App, Backoff
from headrace.engine import draining, intake, operations
from headrace.engine.draining import drain_queue, resume_queue
from headrace.model.backlog import Drained
from headrace.model.errors import DrainStoppedError, QueueClosedError, QueuePausedError
from headrace.runtime import Runtime
from tests.unit.cli_runner import CommandLine, as_client, command_line, working
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

SECONDS = timedelta(seconds=1)


@pytest.fixture
def headrace(monkeypatch: pytest.MonkeyPatch) -> Iterator[CommandLine]:
    """The command line."""
    with command_line(monkeypatch) as line:
        yield line


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let what takes a second take a tenth."""
    monkeypatch.setattr(draining, "HEARD_SECONDS", 0.15)
    monkeypatch.setattr(intake, "BELIEVED_SECONDS", 0.09)
    monkeypatch.setattr(intake, "REFRESH_SECONDS", 0.04)


@pytest.fixture
async def app() -> AsyncIterator[App]:
    """Return an open app with a task that fails once, and no worker."""
    app = quick_app()
    seen: set[int] = set()

    @app.task(retry=Backoff.fixed("10ms", max_attempts=3))
    async def work(number: int) -> int:
        if number not in seen:
            seen.add(number)
            raise ValueError("the first time")
        return number

    async with app:
        yield app


@asynccontextmanager
async def elsewhere(app: App) -> AsyncIterator[Runtime]:
    """Another process on the same stores, as far as enqueueing is concerned."""
    other = Runtime(
        app.settings, app.runtime.stores, llm=None, means=None, limiter=None, caches=None, close_others=None
    )
    yield other
    await other.intake.close()


async def closed(call: Any) -> bool:
    """Whether a call is refused because the queue is closed."""
    try:
        await call()
    except QueueClosedError:
        return True
    return False


async def test_every_process_refuses_soon_after_the_queue_is_closed(app: App) -> None:
    """Single jobs, many, lists and streams are refused, here and in a process that enqueued a moment before."""
    work = app.find_task("work")
    await work.enqueue(1)
    async with elsewhere(app) as other:
        await other.intake.enter("default")
        await app.runtime.stores.control.set_queue_closed("default", closed=True)
        await wait_until(lambda: closed(lambda: work.enqueue(2)), message="this process")
        await wait_until(lambda: closed(lambda: other.intake.enter("default")), message="the other")
    assert await closed(lambda: work.enqueue_many([1]))
    assert await closed(lambda: app.submit(work, [1]))
    assert await closed(lambda: app.submit(work, iter([1])))
    assert await app.runtime.stores.inspect.list_batches() == []
    await work.options(queue="other").enqueue(1)


async def test_a_process_that_slept_hears_of_it_before_it_enqueues(app: App) -> None:
    """What was read long ago is not believed: the first enqueue after a pause asks again."""
    work = app.find_task("work")
    await work.enqueue(1)
    await app.runtime.stores.control.set_queue_closed("default", closed=True)
    loop = asyncio.get_running_loop()
    silent_until = loop.time() + 2 * intake.BELIEVED_SECONDS
    await wait_until(lambda: loop.time() > silent_until)
    assert await closed(lambda: work.enqueue(2))


@pytest.mark.parametrize("is_closed", [False, True])
async def test_a_slow_store_delays_an_enqueue_by_one_read(
    app: App, monkeypatch: pytest.MonkeyPatch, is_closed: bool
) -> None:
    """Reading which queues are closed takes longer than the answer is believed: an enqueue waits for one read."""
    control, reads = app.runtime.stores.control, 0
    await control.set_queue_closed("default", closed=is_closed)
    read = control.queue_states

    async def slowly() -> Any:
        nonlocal reads
        reads += 1
        states = await read()
        await asyncio.sleep(2 * intake.BELIEVED_SECONDS)
        return states

    monkeypatch.setattr(control, "queue_states", slowly)
    async with asyncio.timeout(5):
        assert await closed(lambda: app.find_task("work").enqueue(1)) is is_closed
    assert reads == 1


async def test_a_drain_ends_when_nothing_is_left(app: App) -> None:
    """Accepted jobs run, with their retries; then the drain is over and the queue stays closed."""
    work = app.find_task("work")
    handles = await work.enqueue_many(range(5))
    looks: list[Drained] = []
    async with app.worker():
        drained = await asyncio.wait_for(drain_queue(app.runtime.stores, "default", on_look=looks.append), 20)
    assert drained == Drained("default", heard=True, done=True)
    assert [await handle.result(1) for handle in handles] == list(range(5))
    assert looks[-1] == drained
    assert (await app.runtime.stores.control.queue_states())["default"].closed


async def test_a_drain_says_what_is_left_at_its_timeout(app: App) -> None:
    """Without a worker it ends at the timeout with what is left by state."""
    work = app.find_task("work")
    await work.enqueue_many([1, 2])
    await work.options(run_at="1h").enqueue(3)
    drained = await drain_queue(app.runtime.stores, "default", timeout=0.2 * SECONDS)
    assert (drained.ready, drained.scheduled, drained.left, drained.done) == (2, 1, 3, False)


async def test_an_empty_queue_is_drained_once_all_have_heard(app: App) -> None:
    """A queue that is empty may still be sent jobs by those who have not heard: these are waited for."""
    loop = asyncio.get_running_loop()
    began = loop.time()
    drained = await drain_queue(app.runtime.stores, "default")
    assert drained.done
    assert loop.time() - began >= draining.HEARD_SECONDS


async def test_an_empty_queue_is_told_as_empty_before_all_have_heard(app: App) -> None:
    """A timeout shorter than the news takes: nothing is left, and that is not yet for good; it is once they heard."""
    early = await app.drain("default", timeout=0)
    assert (early.empty, early.heard, early.done) == (True, False, False)
    await app.resume("default")
    await app.find_task("work").enqueue(1)
    early = await app.drain("default", timeout=0)
    assert (early.empty, early.heard, early.done) == (False, False, False)
    late = await app.drain("default", timeout=3 * draining.HEARD_SECONDS)
    assert (late.empty, late.heard, late.done) == (False, True, False)
    async with app.worker():
        assert (await app.drain("default")).done


async def test_a_paused_queue_is_not_drained(app: App) -> None:
    """A drain that could never end is refused with the fix, also when the pause comes later."""
    stores = app.runtime.stores
    await operations.set_queue_paused(stores, "default", paused=True)
    with pytest.raises(QueuePausedError, match="headrace queue resume default"):
        await drain_queue(stores, "default")
    assert not (await stores.control.queue_states())["default"].closed
    await resume_queue(stores, "default")
    await app.find_task("work").enqueue(1)
    drain = asyncio.create_task(drain_queue(stores, "default"))
    await wait_until(lambda: closed(lambda: app.find_task("work").enqueue(2)))
    await operations.set_queue_paused(stores, "default", paused=True)
    with pytest.raises(QueuePausedError, match="paused"):
        await asyncio.wait_for(drain, 10)


async def test_a_resumed_queue_takes_jobs_again_and_ends_its_drain(app: App) -> None:
    """Resuming opens a closed queue everywhere within a second; a drain of it that still waits is told."""
    stores, work = app.runtime.stores, app.find_task("work")
    await work.enqueue(1)
    drain = asyncio.create_task(drain_queue(stores, "default"))
    await wait_until(lambda: closed(lambda: work.enqueue(2)))
    await resume_queue(stores, "default")
    with pytest.raises(DrainStoppedError, match="was opened"):
        await asyncio.wait_for(drain, 10)

    async def opened() -> bool:
        return not await closed(lambda: work.enqueue(3))

    await wait_until(opened)


async def test_who_resumes_may_enqueue_at_once(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    """The process that opens a queue does not go on believing that it is closed, however long it would believe."""
    monkeypatch.setattr(intake, "BELIEVED_SECONDS", 3_600)
    await app.runtime.stores.control.set_queue_closed("default", closed=True)
    with pytest.raises(QueueClosedError):
        await app.find_task("work").enqueue(1)
    await app.resume("default")
    await app.find_task("work").enqueue(1)


def test_the_command_drains_and_resume_opens(headrace: CommandLine) -> None:
    """`queue drain` says how far it is and ends with 0; stats show a closed queue until `queue resume`."""
    app = headrace.app()

    @app.task(queue="sums")
    async def double(number: int) -> int:
        return 2 * number

    as_client(app, lambda: double.enqueue_many([1, 2, 3]))
    early = headrace("queue", "drain", "sums", "--timeout", "100ms")
    assert early.exit_code == 1
    assert "no live worker serves sums" in early.stderr
    assert "sums is closed; 3 ready" in early.stdout
    assert "not drained in time" in early.stdout
    assert "closed" in headrace.text("queue", "stats", "sums")
    with working(app):
        assert headrace.json("queue", "drain", "sums")["done"] is True
    assert headrace.json("queue", "stats", "sums")["closed"] is True
    with pytest.raises(QueueClosedError, match="headrace queue resume sums"):
        as_client(app, lambda: double.enqueue(4))
    assert headrace.json("queue", "resume", "sums") == {"queue": "sums", "paused": False, "closed": False}
    as_client(app, lambda: double.enqueue(4))


def test_an_unknown_queue_is_not_drained(headrace: CommandLine) -> None:
    """A queue that nobody has used is an error, unless it is closed before its first job on purpose."""
    assert headrace.refusal("queue", "drain", "later")[0] == 5
    assert headrace.json("queue", "drain", "later", "--force")["done"] is True


def test_draining_a_paused_queue_has_a_code_of_its_own(headrace: CommandLine) -> None:
    """A script can tell a paused queue from everything else that fails."""
    headrace.text("queue", "pause", "llm", "--force")
    code, error = headrace.refusal("queue", "drain", "llm")
    assert (code, error["code"]) == (1, "queue_paused")
    assert "headrace queue resume llm" in error["message"]
