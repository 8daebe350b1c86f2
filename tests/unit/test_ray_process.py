"""A process of a Ray cluster that runs calls, on a store in memory: what it answers, and what ends it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NoReturn

import pytest

from headrace import App, Backoff
from headrace import farm_calls as calling
from headrace import ray_process as module
from headrace.executors.ray.remote import call
from headrace.farm_calls import FarmCalls
from headrace.model.farm import ENDED, Fence
from headrace.model.luggage import Luggage
from headrace.ray_process import RayProcess
from headrace.tasks import Task
from tests.unit.engine_app import quick_app
from tests.unit.test_farm_calls import claimed
from tests.waiting import wait_until_sync

#: What the process of these tests finds by its name, and what its lifespan does.
FAILS: list[Exception] = []


@asynccontextmanager
async def lifespan(_app: App) -> Any:
    """Fail while there is something to fail with."""
    if FAILS:
        raise FAILS.pop()
    yield


app = quick_app(lifespan=lifespan)
STARTED = threading.Event()


@app.task
async def double(number: int) -> int:
    """Do little."""
    return 2 * number


@app.task
async def wait_long() -> None:
    """Wait for nothing."""
    STARTED.set()
    await asyncio.sleep(60)


@app.task(timeout="1s", retry=Backoff.fixed(max_attempts=1, delay=0))
def stay() -> None:
    """Hear nothing for a while, in a thread."""
    STARTED.wait(10)


class EndedError(Exception):
    """The process would have ended."""


@pytest.fixture(autouse=True)
def ends(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Note why the process would have ended."""
    whys: list[str] = []

    def end(why: str) -> NoReturn:
        whys.append(why)
        raise EndedError(why)

    monkeypatch.setattr(module, "end_process", end)
    monkeypatch.setattr(calling, "end_process", end)
    monkeypatch.setattr(module, "OPEN_AGAIN_SECONDS", 0.05)
    return whys


@pytest.fixture
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[RayProcess]:
    """Have one, whose loop ends with the test."""
    process = RayProcess()
    # As in a process of Ray's: what ran here before may have left a handler of its own.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(module, "_PROCESS", process)
    monkeypatch.setattr(RayProcess, "_serve", lambda self: self._loop.run_forever())
    STARTED.clear()
    try:
        yield process
    finally:
        if process._opening is not None and process._loop.is_running():
            asyncio.run_coroutine_threadsafe(process._opening.result().close(), process._loop).result(10)
        process._loop.call_soon_threadsafe(process._loop.stop)
        wait_until_sync(lambda: not process._loop.is_running())
        process._loop.close()
        signal.signal(signal.SIGINT, before)


def luggage(**environ: str) -> str:
    """Return what comes along with a call."""
    return Luggage(f"{__name__}:app", (__name__,), environ, str(Path.cwd())).text


def opened(process: RayProcess) -> FarmCalls:
    """Open the app there."""
    return process.open(luggage(), "node")


def claim(process: RayProcess, task: Task[..., Any], *args: Any) -> Fence:
    """Let a worker claim a job."""
    return asyncio.run_coroutine_threadsafe(claimed(app, task, *args), process._loop).result(10)


def interrupt_when(condition: Callable[[], bool]) -> threading.Thread:
    """Interrupt the main thread, as Ray does, once a condition holds."""

    def run() -> None:
        wait_until_sync(condition)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def test_an_answer_is_a_completion(process: RayProcess) -> None:
    """A second call of the same fence is none of a job that runs for it."""
    opened(process)
    fence = claim(process, double, 21)
    answer = json.loads(module.work(luggage(), fence.word, "node"))
    assert (answer["completion"]["state"], answer["completion"]["result"]) == ("succeeded", "42")
    assert module.work(luggage(), fence.word, "node") == b"{}"


def test_an_app_that_cannot_be_opened_begins_nothing(process: RayProcess) -> None:
    """It is opened again with a later call, and not at once."""
    FAILS.append(ConnectionRefusedError("the cache is away"))
    word = "01a21df6-8a0c-72c8-8226-3878ee4c2bf5/1/01a21df6-8a0c-72c8-8226-3878ee4c2bf5"
    began = time.monotonic()
    answer = json.loads(module.work(luggage(), word, "node"))
    assert answer == {"not_begun": "the app cannot be opened there: ConnectionRefusedError: the cache is away"}
    assert module.work(luggage(), word, "node") == b"{}"
    assert time.monotonic() - began >= 0.05
    unknown = Luggage("no.such.module:app", (), {}, "").text
    process._opening = None
    assert "No module named 'no'" in json.loads(module.work(unknown, word, "node"))["not_begun"]
    assert opened(process) is not None


def test_an_interruption_stops_the_handler(process: RayProcess) -> None:
    """Nobody waits for it: nothing is answered, and nothing ends."""
    calls = opened(process)
    fence = claim(process, wait_long)
    thread = interrupt_when(STARTED.is_set)
    assert process.work(calls, fence) == b"{}"
    thread.join()
    assert json.loads(process.work(calls, claim(process, double, 1)))["completion"]["result"] == "2"


def test_an_interruption_before_the_handler_stops_the_call(
    process: RayProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not begun, or is only being fetched."""
    entered = threading.Event()

    async def begin(_calls: FarmCalls, _fence: Fence) -> None:
        entered.set()
        await asyncio.sleep(60)

    calls = opened(process)
    fence = claim(process, double, 1)
    monkeypatch.setattr(FarmCalls, "_begin", begin)
    thread = interrupt_when(entered.is_set)
    assert process.work(calls, fence) == b"{}"
    thread.join()


def test_a_handler_that_stays_in_its_thread_takes_the_process_along(
    process: RayProcess, ends: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How it ended is in the store, where the worker finds it."""
    monkeypatch.setattr(calling, "STUBBORN_SECONDS", 0.05)
    calls = opened(process)
    fence = claim(process, stay)
    with pytest.raises(EndedError, match="goes on in its thread"):
        process.work(calls, fence)
    steps = asyncio.run_coroutine_threadsafe(app.runtime.stores.jobs.load_steps(fence.job), process._loop).result(10)
    assert json.loads(steps[ENDED])["completion"]["error"]["kind"] == "timeout"
    STARTED.set()


def test_settings_of_the_node_do_not_count(process: RayProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the worker do, and its folder where it is there."""
    monkeypatch.setenv("HEADRACE_URL", "postgresql://of-the-node")
    monkeypatch.setenv("HEADRACE_WORKER_COUNT", "7")
    monkeypatch.chdir("/")
    module._unpack(Luggage("m:app", (), {"HEADRACE_WORKER_COUNT": "2"}, "/tmp"))
    assert ("HEADRACE_URL" in os.environ, os.environ["HEADRACE_WORKER_COUNT"], str(Path.cwd())) == (False, "2", "/tmp")
    module._unpack(Luggage("m:app", (), {}, "/no such folder"))
    assert str(Path.cwd()) == "/tmp"


def test_ray_calls_the_entry_by_its_name() -> None:
    """It is no part of what a message says but a constant of the wiring."""
    assert (call.__module__, call.__qualname__) == ("headrace.executors.ray.remote", "call")
