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
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from headrace.app import App
from headrace.child import load_module, load_named
from headrace.farm_calls import STUBBORN_SECONDS, FarmCalls, NoLink, end_process
from headrace.farm_overrun import end_overdue
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
        calls = _PROCESS.open(luggage, node)
    except (Exception, SystemExit) as error:
        LOG.exception("the app cannot be opened")
        return _not_begun(f"the app cannot be opened there: {_words(error)}")
    return _PROCESS.work(calls, fence)


@dataclass(slots=True)
class RayProcess:
    """This process."""

    _loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.new_event_loop)
    _opening: Future[FarmCalls] | None = None
    _failed_at: float = float("-inf")
    #: What works on the call that runs.
    _task: asyncio.Task[Any] | None = None

    def open(self, luggage: str, node: str) -> FarmCalls:
        """Return the open app; the first time it is opened. Raises what keeps it from that, which is no job's fault."""
        if self._opening is None:
            pause = self._failed_at + OPEN_AGAIN_SECONDS - time.monotonic()
            if pause > 0:
                threading.Event().wait(pause)
            self._failed_at = time.monotonic()
            app = load_packed(Luggage.parse(luggage))
            if not self._loop.is_running():
                threading.Thread(target=self._serve, name="headrace-ray", daemon=True).start()
            calls = FarmCalls(app, node, NoLink())
            self._opening = asyncio.run_coroutine_threadsafe(_open(calls), self._loop)
        try:
            return self._opening.result()
        except (Exception, SystemExit):
            self._opening, self._failed_at = None, time.monotonic()
            raise

    def _serve(self) -> None:
        try:
            self._loop.run_forever()
        finally:
            # By KeyboardInterrupt or SystemExit out of a task.
            end_process("its event loop has ended")

    def work(self, calls: FarmCalls, fence: Fence) -> bytes:
        """Run a call to its end. KeyboardInterrupt is Ray's way to say that nobody waits for it any more."""
        working = asyncio.run_coroutine_threadsafe(self._answer(calls, fence), self._loop)
        while not working.done():
            try:
                with contextlib.suppress(TimeoutError, CancelledError):
                    working.exception(timeout=_WATCH_SECONDS)
                if not working.done() and calls.overdue:
                    end_overdue(calls, fence)
            except KeyboardInterrupt:
                # Also where the loop is blocked by what is to stop.
                calls.ends_at = min(calls.ends_at, time.monotonic() + STUBBORN_SECONDS)
                self._loop.call_soon_threadsafe(self._stop, calls)
        if working.cancelled():
            return _STOPPED
        if (error := working.exception()) is not None:
            end_process(f"job {fence.job} can be neither begun nor ended: {error!r}")
        return working.result()

    def _stop(self, calls: FarmCalls) -> None:
        if not calls.stop() and self._task is not None:
            self._task.cancel()

    async def _answer(self, calls: FarmCalls, fence: Fence) -> bytes:
        self._task = asyncio.current_task()
        try:
            completion = await calls.answer(fence)
            if await calls.thread_stays():
                # The process ends before Ray has its answer: that is found in the store.
                if completion is not None:
                    await calls.keep_end(fence, completion)
                end_process(f"the handler of job {fence.job} goes on in its thread")
        except FenceLostError:
            return _STOPPED
        except StoreUnavailableError as error:
            return _not_begun(_words(error))
        finally:
            self._task = None
        return _STOPPED if completion is None else encode_completion(completion)


async def _open(calls: FarmCalls) -> FarmCalls:
    try:
        await calls.open()
    except BaseException:
        await calls.close()
        raise
    return calls


def load_packed(luggage: Luggage) -> App:
    """Import the app, with the folder and the settings of the worker."""
    _unpack(luggage)
    app: App = load_named(luggage.app)
    for module in luggage.modules:
        load_module(module)
    return app


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


def _words(error: BaseException) -> str:
    return str(error) if isinstance(error, HeadraceError) else f"{type(error).__name__}: {error}"


_PROCESS = RayProcess()
