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
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NoReturn
from uuid import UUID, uuid4

from headrace.app import App
from headrace.calling import Handed, OpenApps
from headrace.engine.attempt import Attempt, StopReason, describe, run_attempt
from headrace.engine.shift import UNKNOWN_TASK_DELAY
from headrace.engine.workflows.patience import AGAIN
from headrace.engine.workflows.remote import join_run
from headrace.model.errors import ConfigError, FenceLostError, HeadraceError, StoreUnavailableError
from headrace.model.farm import Begun, Fence, begun_step, ended_step
from headrace.model.job import ClaimedJob, Completion, JobState
from headrace.ports.wire import encode_completion
from headrace.wiring.farm import compose_farm, farm_queues, open_link, run_farm_worker

if TYPE_CHECKING:
    from headrace.executors.celery.link import Link

LOG = logging.getLogger("headrace.farm")

#: How often a process looks whether the attempt that it runs still owns its job: a hint says so sooner.
LOOK_SECONDS = 5.0
#: A handler that was stopped, or has reached its time, may go on so long; then its process ends.
STUBBORN_SECONDS = 2.0
#: While the store cannot answer, the end of a call is kept so long.
RECORD_SECONDS = 60.0
_RECORD_AGAIN = 0.5
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
        threading.Thread(target=self._loop.run_forever, name="headrace-farm", daemon=True).start()
        self._opening = asyncio.run_coroutine_threadsafe(self._open(), self._loop)

    async def _open(self) -> FarmCalls:
        calls = FarmCalls(self.app, self.worker, open_link(self.app.settings))
        await calls.open()
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
                working.result(timeout=STUBBORN_SECONDS / 4)
            if not working.done() and time.monotonic() > calls.ends_at:
                _exit(f"job {fence.job} heeds neither its timeout nor its end")

    def _ready(self) -> FarmCalls:
        assert self._opening is not None
        try:
            self._calls = self._opening.result()
        except Exception as error:
            # Another process begins in its place, and its messages are sent again.
            _exit(f"the app cannot be opened: {error}")
        return self._calls

    def end(self) -> None:
        """Close the app."""
        if self._calls is None or self._loop is None:
            return
        closing = asyncio.run_coroutine_threadsafe(self._calls.close(), self._loop)
        with contextlib.suppress(Exception):
            closing.result(_CLOSE_SECONDS)


def _exit(why: str) -> NoReturn:
    LOG.error("process %d ends: %s", os.getpid(), why)
    logging.shutdown()
    os._exit(1)


@dataclass(slots=True)
class FarmCalls:
    """Runs calls on the event loop of a process."""

    app: App
    worker: str
    link: Link
    #: By the monotonic clock; the main thread ends the process after it.
    ends_at: float = float("inf")
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _apps: OpenApps = field(init=False)
    _listening: asyncio.Task[None] | None = None
    _running: tuple[Fence, Attempt] | None = None

    def __post_init__(self) -> None:
        self._apps = OpenApps(self._stack)

    async def open(self) -> None:
        """Open the app, and hear of calls that are to stop."""
        await self._apps.open(self.app)
        self._listening = asyncio.create_task(self.link.hear_stops(self._on_stop))

    async def close(self) -> None:
        """Close what is open."""
        if self._listening is not None:
            self._listening.cancel()
            await asyncio.gather(self._listening, return_exceptions=True)
        await self._stack.aclose()
        await self.link.close()

    async def work(self, fence: Fence) -> None:
        """Run a call if nobody has begun it, and store its end under its fence."""
        self.ends_at = float("inf")
        try:
            job = await self._begin(fence)
            completion = None if job is None else await self._run(fence, job)
            if completion is not None:
                await self._record(fence, completion)
        except FenceLostError:
            LOG.info("attempt %d of job %s does not own it any more", fence.attempt, fence.job)
        except StoreUnavailableError as error:
            LOG.warning("job %s was not begun, its message will be sent again: %s", fence.job, error)
        await self.link.tell_end(fence)
        if await self._thread_stays():
            _exit(f"the handler of job {fence.job} goes on in its thread")

    async def _begin(self, fence: Fence) -> ClaimedJob | None:
        """Return the job if this process begins the call; a second message, or an old one, finds that it does not."""
        jobs = self.app.runtime.stores.jobs
        job = await jobs.running_job(fence.job, attempt=fence.attempt, session=fence.session)
        if job is None:
            LOG.info("an old message: attempt %d of job %s does not own it any more", fence.attempt, fence.job)
            return None
        sign = Begun(self.worker, os.getpid(), time.time(), uuid4().hex)
        stored = await jobs.save_step(
            job.id, attempt=job.attempt, session=fence.session, name=begun_step(job.attempt), value=sign.text
        )
        if Begun.parse(stored).sign != sign.sign:
            LOG.info("a second message: attempt %d of job %s has begun elsewhere", job.attempt, job.id)
            return None
        return job

    async def _run(self, fence: Fence, job: ClaimedJob) -> Completion | None:
        """Return how the call ended; None when it was stopped, and nobody waits for its end."""
        task = self.app.registry.get(job.task)
        if task is None:
            LOG.warning("no task %r in this worker; job %s is left to others", job.task, job.id)
            return Completion(job.id, job.attempt, JobState.SCHEDULED, delay=UNKNOWN_TASK_DELAY, batch_id=job.batch_id)
        timeout = (job.timeout or self.app.settings.worker.max_processing_time).total_seconds()
        self.ends_at = time.monotonic() + timeout + 2 * STUBBORN_SECONDS
        try:
            part, backoff = await join_run(self.app.runtime.means, job)
            handed = Handed(
                self.app, task, job, fence.session, timeout, on_stored=self._on_stored(fence, timeout), part=part,
                backoff=backoff,
            )  # fmt: skip
            executor, proceed = compose_farm()
            attempt = await self._apps.attempt(handed, executor)
        except Exception as error:
            return _not_begun(job, error)
        attempt.runner = asyncio.create_task(run_attempt(attempt, proceed))
        guard = asyncio.create_task(self._guard(fence, attempt))
        self._running = fence, attempt
        try:
            completion: Completion | None = await attempt.runner
        finally:
            self._running = None
            guard.cancel()
        # What is to be stored has its own time.
        self.ends_at = float("inf")
        return completion

    def _on_stored(self, fence: Fence, seconds: float) -> Any:
        told: list[asyncio.Task[None]] = []

        def tell() -> None:
            if not told:
                told.append(asyncio.get_running_loop().create_task(self.link.note_progress(fence, 2 * seconds)))

        return tell

    async def _guard(self, fence: Fence, attempt: Attempt) -> None:
        """Stop the call when its attempt does not own its job any more, or is to be cancelled."""
        jobs = self.app.runtime.stores.jobs
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            with contextlib.suppress(StoreUnavailableError):
                job = await jobs.running_job(fence.job, attempt=fence.attempt, session=fence.session)
                if job is None or job.cancel_requested:
                    self._stop(attempt)

    def _on_stop(self, fence: Fence) -> None:
        if self._running is not None and self._running[0] == fence:
            self._stop(self._running[1])

    def _stop(self, attempt: Attempt) -> None:
        """End a call that nobody waits for: nothing is written for it."""
        self.ends_at = min(self.ends_at, time.monotonic() + STUBBORN_SECONDS)
        attempt.stop(StopReason.LEASE_LOST)

    async def _record(self, fence: Fence, completion: Completion) -> None:
        """Store the end of a call, once; a store that does not answer for long costs this process."""
        text = encode_completion(completion).decode()
        jobs, deadline = self.app.runtime.stores.jobs, time.monotonic() + RECORD_SECONDS
        while True:
            try:
                await jobs.save_step(
                    fence.job, attempt=fence.attempt, session=fence.session, name=ended_step(fence.attempt), value=text
                )
                return
            except StoreUnavailableError as error:
                if time.monotonic() > deadline:
                    _exit(f"the end of job {fence.job} cannot be stored: {error}")
                await asyncio.sleep(_RECORD_AGAIN)

    async def _thread_stays(self) -> bool:
        """Whether the handler goes on in its thread, which nothing can stop."""
        deadline = time.monotonic() + STUBBORN_SECONDS
        while self._apps.threads_busy and time.monotonic() < deadline:  # noqa: ASYNC110 - a thread sets no event
            await asyncio.sleep(0.02)
        return bool(self._apps.threads_busy)


def _not_begun(job: ClaimedJob, error: Exception) -> Completion:
    """Return the end of a call whose handler was not called: it could not be given what it needs."""
    if isinstance(error, HeadraceError) and error.transient:
        LOG.warning("job %s cannot begin yet: %s", job.id, error)
        return Completion(job.id, job.attempt, JobState.SCHEDULED, delay=AGAIN, batch_id=job.batch_id)
    error_of = describe(error, with_trace=not isinstance(error, HeadraceError))
    return Completion(job.id, job.attempt, JobState.FAILED, error=error_of, batch_id=job.batch_id)
