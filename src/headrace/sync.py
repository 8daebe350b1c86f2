"""Coroutines from synchronous code: scripts, Django, Flask, and sync handlers inside a worker.

One background thread with an event loop per process and app; after a fork the child starts its own.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from headrace.model.errors import ConfigError

if TYPE_CHECKING:
    from headrace.app import App

T = TypeVar("T")


class SyncClient:
    """Runs awaitables of one app to their end.

    >>> from headrace import App
    >>> app = App("memory://")
    >>> @app.task
    ... async def double(number: int) -> int:
    ...     return 2 * number
    >>> handle = app.sync(double.enqueue(21))
    >>> app.sync.close()
    """

    def __init__(self, app: App) -> None:
        self._app = app
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        #: The loop this client opened the app on.
        self._loop: asyncio.AbstractEventLoop | None = None
        #: A loop of somebody else to open the app on, rather than on one of its own.
        self._adopted: asyncio.AbstractEventLoop | None = None

    def adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """Open the app on `loop`, which another thread runs, instead of starting a thread."""
        self._adopted = loop

    def __call__(self, awaitable: Awaitable[T]) -> T:
        """Run `awaitable` and return its value; its exceptions pass through.

        Opens the app on first use. Raises ConfigError when called on an event loop, which it would block.
        """
        try:
            loop = self._loop_for_callers()
        except BaseException:
            if asyncio.iscoroutine(awaitable):
                awaitable.close()
            raise
        return asyncio.run_coroutine_threadsafe(_as_coroutine(awaitable), loop).result()

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an async iterator, for example `batch.results()`."""
        ended = object()

        async def step() -> Any:
            return await anext(items, ended)

        while (item := self(step())) is not ended:
            yield item

    def close(self) -> None:
        """Close the app and end the thread; the next call begins anew."""
        if self._pid != os.getpid():
            return
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None:
            asyncio.run_coroutine_threadsafe(self._app.__aexit__(), loop).result()
            if loop is not self._adopted:
                loop.call_soon_threadsafe(loop.stop)

    def _loop_for_callers(self) -> asyncio.AbstractEventLoop:
        """Return the loop the app is open on, or start one and open the app there."""
        with contextlib.suppress(RuntimeError):
            asyncio.get_running_loop()
            raise ConfigError("app.sync was called on an event loop, which it would block; use `await` instead")
        if self._pid != os.getpid():
            # Forked: lock, loop, thread and connections belong to the parent and are left to it.
            self._begin_anew()
        with self._lock:
            self._app.forget_gone_runtime()
            if not self._app.is_open:
                self._loop = self._open()
            return self._app.runtime.loop

    def _open(self) -> asyncio.AbstractEventLoop:
        loop = self._adopted or _start_loop()
        try:
            asyncio.run_coroutine_threadsafe(self._app.__aenter__(), loop).result()
        except BaseException:
            if loop is not self._adopted:
                loop.call_soon_threadsafe(loop.stop)
            raise
        return loop


async def _as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _start_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.new_event_loop()
    threading.Thread(target=_run_loop, args=(loop,), name="headrace-sync", daemon=True).start()
    return loop


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()
