"""A worker process from its start to its exit code."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from headrace.celery_settings import ENGINE_QUEUES
from headrace.cli.loading import load_app
from headrace.cli.long_running import run_long, settle
from headrace.cli.output import print_json
from headrace.cli.signals import StopSignals, exit_now, exit_within, follow_lifeline
from headrace.daemon_threads import busy_threads
from headrace.model.durations import format_duration

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.engine.worker import Worker

LOG = logging.getLogger("headrace.worker")

#: After everything is recorded the process may clean up this long: threads of handlers cannot be stopped.
EXIT_SECONDS = 5.0
#: Beyond the grace time, for a worker whose supervisor is gone: to record what ended and to close.
CLOSING_SECONDS = 15.0


@dataclass(frozen=True, slots=True)
class WorkOptions:
    """What `headrace worker` was asked for."""

    app: str
    #: slots by queue, None for the default; empty: every queue of the app's tasks
    queues: Mapping[str, int | None]
    concurrency: int | None = None
    grace: timedelta | None = None
    as_json: bool = False
    #: Goes on beside the worker, in the same process, until its event is set.
    beside: Callable[[App, asyncio.Event], Coroutine[Any, Any, None]] | None = None
    #: Read end of a pipe that ends with the supervisor.
    lifeline: int | None = None


def run_worker(options: WorkOptions) -> int:
    """Work until a signal; return the exit code. Never returns when handlers in threads go on running."""
    app = load_app(options.app)
    grace = app.settings.worker.shutdown_grace if options.grace is None else options.grace
    if options.lifeline is not None:
        follow_lifeline(options.lifeline, within=grace.total_seconds() + CLOSING_SECONDS)
    code = run_long(until_signal(app, lambda stopping: _work_until(stopping, app, options, grace)))
    _leave_threads(code)
    return code


async def until_signal(app: App, work: Callable[[asyncio.Event], Coroutine[Any, Any, None]]) -> int:
    """Do work that ends when its event is set, by SIGTERM or Ctrl-C; return the exit code."""
    loop, stopping = asyncio.get_running_loop(), asyncio.Event()
    signals = StopSignals(lambda: loop.call_soon_threadsafe(stopping.set), exit_now)
    signals.install()
    working = asyncio.create_task(work(stopping))
    stopped = asyncio.create_task(stopping.wait())
    await asyncio.wait([working, stopped], return_when=asyncio.FIRST_COMPLETED)
    stopped.cancel()
    if not working.done() and not app.is_open:
        # A store that is being waited for must not hold the process.
        working.cancel()
        await asyncio.wait([working])
    if not working.cancelled():
        await working
    # Threads that never end hold `asyncio.run` itself.
    exit_within(EXIT_SECONDS, signals.exit_code)
    return signals.exit_code


async def _work_until(stopping: asyncio.Event, app: App, options: WorkOptions, grace: timedelta) -> None:
    async with app.worker(queues=_slots(app, options), concurrency=options.concurrency, grace=grace) as worker:
        settle()
        _announce_start(app, worker, options)
        beside = None if options.beside is None else asyncio.create_task(options.beside(app, stopping))
        await stopping.wait()
        LOG.info(
            "stopping: running jobs may end within %s; a second signal ends the process at once", format_duration(grace)
        )
        if beside is not None:
            await beside
    LOG.info("stopped")
    if options.as_json:
        print_json({"event": "stopped", "pid": os.getpid()})
        sys.stdout.flush()


def _slots(app: App, options: WorkOptions) -> dict[str, int] | None:
    if not options.queues:
        return None
    known = [*app.registry.queues(), *sorted(ENGINE_QUEUES)]
    for queue in options.queues:
        if queue not in known:
            LOG.warning("no task of %s has the queue %r by default; they have: %s", options.app, queue, known)
    default = options.concurrency or app.settings.worker.concurrency
    return {queue: slots or app.registry.slots(queue, default) for queue, slots in options.queues.items()}


def _announce_start(app: App, worker: Worker, options: WorkOptions) -> None:
    if app.settings.queue.type == "memory":
        LOG.warning("the memory store is seen by this process only: nobody else can enqueue jobs for this worker")
    session = None if worker.session is None else worker.session.id
    queues = {} if worker.session is None else worker.session.queues
    shown = ", ".join(f"{name} ({slots} at once)" for name, slots in queues.items())
    tasks = ", ".join(sorted(task.name for task in app.registry)) or "none"
    LOG.info("working on %s; tasks: %s; session %s, pid %d", shown, tasks, session, os.getpid())
    if options.as_json:
        print_json({"event": "started", "pid": os.getpid(), "session": session, "queues": queues})
        sys.stdout.flush()


def _leave_threads(code: int) -> None:
    """Exit without waiting for handlers that still run in threads; their jobs were released."""
    for thread in busy_threads():
        thread.join(timeout=0.1)
    if running := len(busy_threads()):
        LOG.warning("%d handlers in threads go on although they were told to stop: leaving them", running)
        logging.shutdown()
        sys.stdout.flush()
        os._exit(code)
