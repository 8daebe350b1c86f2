"""A thread that does one call after another, for a client that blocks and that no two threads may use at once."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


class OwnThread:
    """Calls are done in the order in which they were asked for.

    It is a daemon: a call that never returns, such as leaving a group whose broker is gone, does not hold the process.
    """

    def __init__(self, name: str) -> None:
        """`name` is for people who look at threads."""
        self._calls: queue.SimpleQueue[tuple[Callable[[], Any], Future[Any]] | None] = queue.SimpleQueue()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    def submit(self, call: Callable[[], T]) -> Future[T]:
        """Ask for a call."""
        future: Future[T] = Future()
        self._calls.put((call, future))
        return future

    async def do(self, call: Callable[[], T]) -> T:
        """Await a call. Cancelled, it is left out if it has not begun, and else goes on unseen."""
        return await asyncio.wrap_future(self.submit(call))

    def end(self) -> None:
        """End the thread after what was asked for."""
        self._calls.put(None)

    def _run(self) -> None:
        while asked := self._calls.get():
            call, future = asked
            if future.set_running_or_notify_cancel():
                _answer(call, future)
            # Nothing of it is kept alive while the thread waits.
            del asked, call, future


def _answer(call: Callable[[], Any], future: Future[Any]) -> None:
    try:
        result = call()
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
