"""Daemon threads for sync handlers, beside the event loop.

Unlike those of `concurrent.futures`, which Python joins at its exit: a handler that ignores its timeout or a shutdown
must not keep the process alive, for its work may be running elsewhere by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import threading
from collections.abc import Callable
from dataclasses import dataclass
from queue import Empty, SimpleQueue
from typing import Any

#: Threads are made only when none is idle; a handler that ignores its timeout keeps its thread, not a slot.
MAX_THREADS = 1_000
#: A thread without work ends after this long.
IDLE_SECONDS = 10.0

#: Threads of this process that are inside a function; an idle one is none.
_BUSY: set[threading.Thread] = set()


def busy_threads() -> list[threading.Thread]:
    """Return the threads that run a function now, of all pools of this process."""
    return list(_BUSY)


@dataclass(slots=True)
class _Work:
    """A function to run, and the future that its event loop waits on."""

    function: Callable[[], Any]
    future: asyncio.Future[Any]

    def run(self) -> None:
        if self.future.cancelled():
            return
        _BUSY.add(threading.current_thread())
        try:
            value = self.function()
        except BaseException as error:
            self._tell(None, error)
        else:
            self._tell(value, None)
        finally:
            _BUSY.discard(threading.current_thread())

    def _tell(self, value: Any, error: BaseException | None) -> None:
        # RuntimeError: the loop has ended, and nobody waits any more.
        with contextlib.suppress(RuntimeError):
            self.future.get_loop().call_soon_threadsafe(self._settle, value, error)

    def _settle(self, value: Any, error: BaseException | None) -> None:
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(value)


class _Pool:
    """Threads until they are told to end."""

    def __init__(self) -> None:
        #: `_idle` counts threads that wait for work nobody has promised them yet.
        self._queue: SimpleQueue[_Work | None] = SimpleQueue()
        self._idle = threading.Semaphore(0)
        self._lock = threading.Lock()
        self._count = 0

    def put(self, work: _Work) -> None:
        """Let a thread do it."""
        self._queue.put(work)
        if self._idle.acquire(blocking=False):
            return
        with self._lock:
            if self._count >= MAX_THREADS:
                return
            self._count += 1
        threading.Thread(target=self._serve, name="headrace-task", daemon=True).start()

    def end(self) -> None:
        """Let every thread end, a busy one after its work."""
        for _ in range(self._count):
            self._queue.put(None)

    def _serve(self) -> None:
        try:
            while (work := self._next()) is not None:
                work.run()
                # Or the thread would hold the last result until there is new work.
                del work
        finally:
            with self._lock:
                self._count -= 1

    def _next(self) -> _Work | None:
        with contextlib.suppress(Empty):
            return self._queue.get_nowait()
        self._idle.release()
        while True:
            try:
                return self._queue.get(timeout=IDLE_SECONDS)
            except Empty:
                # Where the permit is gone, somebody has just put work for this thread.
                if self._idle.acquire(blocking=False):
                    return None


class DaemonThreads:
    """A pool of daemon threads, with new ones after its end."""

    def __init__(self) -> None:
        self._pool = _Pool()

    async def run(self, function: Callable[[], Any]) -> Any:
        """Call a function in a thread, with the context variables of the caller; cancelling stops waiting for it."""
        context = contextvars.copy_context()
        work = _Work(lambda: context.run(function), asyncio.get_running_loop().create_future())
        self._pool.put(work)
        return await work.future

    def end(self) -> None:
        """Let every thread end, a busy one after its work."""
        # An idle one has promised to take work: who comes later must not count on it.
        pool, self._pool = self._pool, _Pool()
        pool.end()
