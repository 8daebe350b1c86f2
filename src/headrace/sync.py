"""Coroutines from synchronous code: scripts, Django, Flask, and sync handlers inside a worker.

One background thread with an event loop per process and app; after a fork the child starts its own.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Iterator
from concurrent.futures import Future
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
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    def __call__(self, awaitable: Awaitable[T]) -> T:
        """Run `awaitable` and return its value; its exceptions pass through.

        Opens the app on first use. Raises ConfigError when called on an event loop, which it would block.
        """
        result: T = self._start(_as_coroutine(awaitable)).result()
        return result

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Yield the items of an async iterator, for example `batch.results()`."""
        ended = object()

        async def step() -> Any:
            return await anext(items, ended)

        while (item := self(step())) is not ended:
            yield item

    def close(self) -> None:
        """Close the app and end the thread; the next call begins anew."""
        with self._lock:
            loop, self._loop = self._loop, None
        if loop is not None and self._pid == os.getpid():
            asyncio.run_coroutine_threadsafe(self._app.__aexit__(), loop).result()
            loop.call_soon_threadsafe(loop.stop)

    def _start(self, coroutine: Any) -> Future[Any]:
        loop = self._running_loop()
        try:
            running = asyncio.get_running_loop()
        except RuntimeError:
            running = None
        if running is not None:
            coroutine.close()
            raise ConfigError("app.sync was called on an event loop, which it would block; use `await` instead")
        return asyncio.run_coroutine_threadsafe(coroutine, loop)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop the app is open on, or start one and open the app there."""
        with self._lock:
            if self._loop is not None and self._pid == os.getpid():
                return self._loop
            if self._app.is_open and self._loop is None:
                return self._app.runtime.loop
            return self._open()

    def _open(self) -> asyncio.AbstractEventLoop:
        if self._loop is not None:
            # Forked: loop, thread and connections belong to the parent and are left to it.
            self._app.forget_runtime()
        self._pid = os.getpid()
        loop = asyncio.new_event_loop()
        threading.Thread(target=_run_loop, args=(loop,), name="headrace-sync", daemon=True).start()
        try:
            asyncio.run_coroutine_threadsafe(self._app.__aenter__(), loop).result()
        except BaseException:
            loop.call_soon_threadsafe(loop.stop)
            raise
        self._loop = loop
        return loop


async def _as_coroutine(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _run_loop(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    loop.close()
