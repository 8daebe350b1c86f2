"""A worker of a Celery farm, from its start to its exit code, and each of its processes.

A process runs one call at a time, on an event loop that a thread of its own runs as long as the process lives: the app
is opened on it once. The main thread is Celery's. It waits, and ends the process when a handler does not heed its end:
Celery starts another one, and the worker that sent the call sees that this one is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from headrace.app import App
from headrace.farm_calls import FarmCalls, end_process
from headrace.farm_overrun import end_overdue
from headrace.model.errors import ConfigError
from headrace.model.farm import Fence
from headrace.wiring.farm import farm_queues, open_link, run_farm_worker

LOG = logging.getLogger("headrace.farm")

#: How often the main thread looks at the call that runs.
_WATCH_SECONDS = 0.5
#: An app that cannot be opened is opened again after so long, in another process.
OPEN_AGAIN_SECONDS = 2.0
#: How long a process may take to close when its worker stops.
_CLOSE_SECONDS = 3.0


def serve_farm(app: App, queues: Sequence[str], *, concurrency: int, level: str) -> int:
    """Work queues of an app on a farm until SIGTERM; return the exit code. Raises what keeps it from starting."""
    chosen = list(queues) or farm_queues(app)
    if not chosen:
        raise ConfigError(
            'no queue of the app runs on Celery: write executor = "celery" into [worker], or into [queues.NAME]'
        )
    foreign = [queue for queue in chosen if app.settings.executor_of(queue) != "celery"]
    if foreign:
        name = foreign[0]
        raise ConfigError(f'queue {name!r} does not run on Celery: write executor = "celery" into [queues.{name}]')
    asyncio.run(_check(app))
    LOG.info("working on %s, %d jobs at once; pid %d", ", ".join(chosen), concurrency, os.getpid())
    return run_farm_worker(app, chosen, FarmProcess(app), concurrency=concurrency, level=level)


async def _check(app: App) -> None:
    """Raise what a process would only find out when it is too late to say so: broker and store must answer."""
    link = open_link(app.settings)
    try:
        await link.check()
    finally:
        await link.close()
    async with app:
        await app.runtime.stores.inspect.store_info()


@dataclass(slots=True)
class FarmProcess:
    """One process of the pool; made in the worker, and begun anew in each process."""

    app: App
    worker: str = ""
    _loop: asyncio.AbstractEventLoop | None = None
    _calls: FarmCalls | None = None
    _opening: Future[FarmCalls] | None = None

    def begin(self, worker: str) -> None:
        """Start the event loop and open the app, without waiting for it: Celery gives a new process four seconds.

        On Linux the process ends with its worker, however that dies: Celery sees to it.
        """
        self.worker = worker
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._serve, name="headrace-farm", daemon=True).start()
        self._opening = asyncio.run_coroutine_threadsafe(self._open(), self._loop)

    def _serve(self) -> None:
        assert self._loop is not None
        try:
            self._loop.run_forever()
        finally:
            # By KeyboardInterrupt or SystemExit out of a task.
            end_process("its event loop has ended")

    async def _open(self) -> FarmCalls:
        calls = FarmCalls(self.app, self.worker, open_link(self.app.settings))
        try:
            await calls.open()
        except Exception:
            # Before the process ends, as the next one gets the same message at once.
            await asyncio.sleep(OPEN_AGAIN_SECONDS)
            raise
        return calls

    def work(self, job: Any, attempt: Any, session: Any) -> None:
        """Work a message to its end; whatever becomes of it, its job's worker finds out by itself."""
        try:
            fence = Fence(UUID(job), int(attempt), UUID(session))
        except (ValueError, TypeError, AttributeError):
            LOG.error("a message that names no attempt is dropped")
            return
        assert self._loop is not None
        calls = self._ready()
        working = asyncio.run_coroutine_threadsafe(calls.work(fence), self._loop)
        while not working.done():
            with contextlib.suppress(TimeoutError):
                working.exception(timeout=_WATCH_SECONDS)
            if not working.done() and calls.overdue:
                end_overdue(calls, fence)
        if (error := working.exception()) is not None:
            # Celery would acknowledge the message of a call that may have begun and will never end.
            end_process(f"job {fence.job} can be neither begun nor ended: {error!r}")

    def _ready(self) -> FarmCalls:
        assert self._opening is not None
        try:
            self._calls = self._opening.result()
        except Exception as error:
            # Nothing was begun. Another process comes in its place, and its message goes back to its queue.
            end_process(f"the app cannot be opened: {error!r}")
        return self._calls

    def end(self) -> None:
        """Close the app."""
        if self._calls is None or self._loop is None:
            return
        closing = asyncio.run_coroutine_threadsafe(self._calls.close(), self._loop)
        with contextlib.suppress(Exception):
            closing.result(_CLOSE_SECONDS)
