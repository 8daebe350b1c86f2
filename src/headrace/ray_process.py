"""A process of a Ray cluster that runs calls: Ray calls `work` in its main thread, one call at a time.

The app is opened with the first call, on an event loop that a thread of its own runs as long as the process lives. The
main thread waits, is interrupted when a call is to stop, and ends the process when a handler does not heed that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path

from headrace.app import App
from headrace.child import load_module, load_named
from headrace.farm_calls import FarmCalls, NoLink, end_process
from headrace.model.errors import FenceLostError, HeadraceError, StoreUnavailableError
from headrace.model.farm import Fence
from headrace.model.luggage import Luggage
from headrace.ports.wire import encode_completion

LOG = logging.getLogger("headrace.ray")

#: How often the main thread looks at the call that runs; also how soon it heeds an interruption.
_WATCH_SECONDS = 0.2
#: An app that could not be opened is opened again no sooner than this.
OPEN_AGAIN_SECONDS = 2.0
_OURS = "HEADRACE_"


def work(luggage: str, word: str, node: str) -> bytes:
    """Run the call of a word, and return how it ended as JSON: a completion, that it was not begun, or nothing."""
    fence = Fence.parse(word)
    try:
        _PROCESS.open(luggage, node)
    except Exception as error:
        LOG.exception("the app cannot be opened")
        return _not_begun(f"the app cannot be opened there: {_words(error)}")
    return _PROCESS.work(fence)


@dataclass(slots=True)
class RayProcess:
    """This process."""

    _calls: FarmCalls | None = None
    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _failed_at: float = float("-inf")

    def open(self, luggage: str, node: str) -> None:
        """Open the app, the first time. Raises what keeps it from that, which is no job's fault."""
        if self._calls is not None:
            return
        pause = self._failed_at + OPEN_AGAIN_SECONDS - time.monotonic()
        if pause > 0:
            threading.Event().wait(pause)
        try:
            self._calls = self._opened(Luggage.parse(luggage), node)
        except BaseException:
            self._failed_at = time.monotonic()
            raise

    def _opened(self, luggage: Luggage, node: str) -> FarmCalls:
        _unpack(luggage)
        app: App = load_named(luggage.app)
        for module in luggage.modules:
            load_module(module)
        if not self._loop.is_running():
            threading.Thread(target=self._serve, name="headrace-ray", daemon=True).start()
        return asyncio.run_coroutine_threadsafe(_open(FarmCalls(app, node, NoLink())), self._loop).result()

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            # By KeyboardInterrupt or SystemExit out of a task.
            end_process("its event loop has ended")

    def work(self, fence: Fence) -> bytes:
        """Run a call to its end."""
        assert self._calls is not None
        working = asyncio.run_coroutine_threadsafe(_answer(self._calls, fence), self._loop)
        while not working.done():
            try:
                self._wait(working)
            except KeyboardInterrupt:
                # By Ray: nobody waits for this call any more.
                if not self._calls.stop():
                    working.cancel()
            if not working.done() and self._calls.overdue:
                end_process(f"job {fence.job} heeds neither its timeout nor its end")
        if working.cancelled():
            return _STOPPED
        if (error := working.exception()) is not None:
            end_process(f"job {fence.job} can be neither begun nor ended: {error!r}")
        return working.result()

    def _wait(self, working: Future[bytes]) -> None:
        with contextlib.suppress(TimeoutError):
            working.exception(timeout=_WATCH_SECONDS)


async def _open(calls: FarmCalls) -> FarmCalls:
    try:
        await calls.open()
    except BaseException:
        await calls.close()
        raise
    return calls


async def _answer(calls: FarmCalls, fence: Fence) -> bytes:
    try:
        completion = await calls.answer(fence)
    except FenceLostError:
        return _STOPPED
    except StoreUnavailableError as error:
        return _not_begun(_words(error))
    await calls.end_threads(fence)
    return _STOPPED if completion is None else encode_completion(completion)


def _unpack(luggage: Luggage) -> None:
    """Take over the folder and the settings of the worker; what this node has of the latter does not count."""
    for name in [name for name in os.environ if name.startswith(_OURS)]:
        del os.environ[name]
    os.environ.update(luggage.environ)
    if luggage.folder and Path(luggage.folder).is_dir():
        os.chdir(luggage.folder)


#: The call was stopped, or is no call of a job that runs: nobody waits for more.
_STOPPED = b"{}"


def _not_begun(why: str) -> bytes:
    return json.dumps({"not_begun": why}).encode()


def _words(error: Exception) -> str:
    return str(error) if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"


_PROCESS = RayProcess()
