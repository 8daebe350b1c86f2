"""Calls in a process of a farm: begun once under their fence, run like anywhere else, and their ends stored."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import os
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import NoReturn, Protocol
from uuid import uuid4

from headrace.app import App
from headrace.calling import Handed, OpenApps
from headrace.engine.attempt import Attempt, StopReason, describe, run_attempt
from headrace.engine.shift import UNKNOWN_TASK_DELAY
from headrace.engine.workflows.patience import AGAIN
from headrace.engine.workflows.remote import join_run
from headrace.event_loops import end_tasks
from headrace.model.errors import FenceLostError, HeadraceError, StoreUnavailableError
from headrace.model.farm import BEGUN, ENDED, PAID, Begun, Fence, own_steps, stored_sign
from headrace.model.job import ClaimedJob, Completion, JobState
from headrace.ports.wire import encode_completion
from headrace.wiring.farm import compose_farm

LOG = logging.getLogger("headrace.farm")

#: How often a process looks whether the attempt that it runs still owns its job: a hint says so sooner.
LOOK_SECONDS = 1.0
#: A handler that was stopped, or has reached its time, may go on so long; then its process ends.
STUBBORN_SECONDS = 2.0
#: While the store cannot answer, a call is begun again and again for so long, and its end is kept for so long.
BEGIN_SECONDS, RECORD_SECONDS = 20.0, 60.0
#: What a handler needs is fetched within this.
FETCH_SECONDS = 60.0
_AGAIN_SECONDS = 0.5


class Link(Protocol):
    """How a process hears from the worker that sent a call, and tells it something. All of it are hints."""

    async def hear_stops(self, on_hint: Callable[[Fence], None]) -> None:
        """Hear of calls that are to end, until cancelled."""
        ...

    async def tell_end(self, fence: Fence) -> None:
        """Tell that a call has ended."""
        ...

    async def close(self) -> None:
        """Close it."""
        ...


class NoLink:
    """A link of a farm that has ways of its own to stop calls, and to bring their ends back."""

    async def hear_stops(self, on_hint: Callable[[Fence], None]) -> None:
        """Hear nothing."""

    async def tell_end(self, fence: Fence) -> None:
        """Tell nobody."""

    async def close(self) -> None:
        """Do nothing."""


@dataclass(slots=True)
class FarmCalls:
    """Runs calls on the event loop of a process."""

    app: App
    worker: str
    link: Link
    #: When the process must end, and when the time of the call that runs is used up; by the monotonic clock.
    ends_at: float = math.inf
    _due_at: float = math.inf
    _stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    _apps: OpenApps = field(init=False)
    _listening: asyncio.Task[None] | None = None
    _running: tuple[Fence, Attempt] | None = None

    def __post_init__(self) -> None:
        self._apps = OpenApps(self._stack)

    async def open(self) -> None:
        """Open the app with its lifespan, before anything is begun, and hear of calls that are to stop."""
        await self._apps.open(self.app)
        await self._apps.enter_lifespan(self.app)
        self._listening = asyncio.create_task(self.link.hear_stops(self._on_stop))

    @property
    def overdue(self) -> bool:
        """Whether the process must end, as a handler does not; asked by the main thread."""
        running = self._running
        if running is not None and running[1].leaving and running[1].stop_reason is None:
            # What it returned is being stored, which has its own time.
            return False
        return time.monotonic() > self.ends_at

    @property
    def overran(self) -> Attempt | None:
        """The attempt whose handler goes on beyond its time, though nobody stopped it; asked by the main thread."""
        running = self._running
        if running is None or running[1].stop_reason is not None or time.monotonic() < self._due_at:
            return None
        return running[1]

    async def close(self) -> None:
        """Close what is open."""
        if self._listening is not None:
            await end_tasks([self._listening])
        await self._stack.aclose()
        await self.link.close()

    async def work(self, fence: Fence) -> None:
        """Run a call if nobody has begun it, and store its end under its fence."""
        try:
            completion = await self.answer(fence)
            if completion is not None:
                await self.keep_end(fence, completion)
        except FenceLostError:
            LOG.info("attempt %d of job %s does not own it any more", fence.attempt, fence.job)
        except StoreUnavailableError as error:
            LOG.warning("job %s was not begun, its message will be sent again: %s", fence.job, error)
        await self.link.tell_end(fence)
        if await self.thread_stays():
            end_process(f"the handler of job {fence.job} goes on in its thread")

    async def keep_end(self, fence: Fence, completion: Completion) -> None:
        """Store how a call ended, under its fence. Raises FenceLostError."""
        await self._store(fence, ENDED, kept_end(fence, completion), RECORD_SECONDS)

    async def answer(self, fence: Fence) -> Completion | None:
        """Run a call if nobody has begun it; return how it ended, None when nobody waits for that.

        Raises FenceLostError, and StoreUnavailableError when it was not begun.
        """
        self.ends_at = math.inf
        job = await self._begin(fence)
        return None if job is None else await self._run(fence, job)

    def stop(self) -> bool:
        """End the call that runs, if one does: nothing is written for it. Return whether there was one."""
        if self._running is None:
            return False
        self._stop(self._running[1])
        return True

    async def _begin(self, fence: Fence) -> ClaimedJob | None:
        """Return the job if this process begins the call; a second message, or an old one, finds that it does not."""
        jobs = self.app.runtime.stores.jobs
        job = await jobs.running_job(fence.job, attempt=fence.attempt, session=fence.session)
        if job is None:
            LOG.info("an old message: attempt %d of job %s does not own it any more", fence.attempt, fence.job)
            return None
        # Before its first attempt a job has none worth a question.
        steps = 0 if job.attempt == 1 else own_steps(await jobs.load_steps(job.id))
        sign = Begun(self.worker, os.getpid(), time.time(), uuid4().hex, job.attempt, steps)
        stored = await self._store(fence, BEGUN, sign.text, BEGIN_SECONDS)
        if stored_sign(stored) != sign.sign:
            LOG.info("a second message: attempt %d of job %s has begun elsewhere, or was given up", job.attempt, job.id)
            return None
        return job

    async def _store(self, fence: Fence, name: str, value: str, patience: float) -> str:
        """Store a step under a fence, once, and return what is stored.

        A store that cannot answer may have stored it: it is asked again with the same. One that does not answer for
        long costs this process, so that the worker that sent the call finds out.
        """
        jobs, deadline = self.app.runtime.stores.jobs, time.monotonic() + patience
        while True:
            try:
                return await jobs.save_step(
                    fence.job, attempt=fence.attempt, session=fence.session, name=name, value=value
                )
            except StoreUnavailableError as error:
                if time.monotonic() > deadline:
                    end_process(f"{name} of job {fence.job} cannot be stored: {error}")
                await asyncio.sleep(_AGAIN_SECONDS)

    async def _run(self, fence: Fence, job: ClaimedJob) -> Completion | None:
        """Return how the call ended; None when it was stopped, and nobody waits for its end."""
        task = self.app.registry.get(job.task)
        if task is None:
            LOG.warning("no task %r in this worker; job %s is left to others", job.task, job.id)
            return Completion(job.id, job.attempt, JobState.SCHEDULED, delay=UNKNOWN_TASK_DELAY, batch_id=job.batch_id)
        timeout = (job.timeout or self.app.settings.worker.max_processing_time).total_seconds()
        self.ends_at = time.monotonic() + FETCH_SECONDS
        try:
            part, backoff = await join_run(self.app.runtime.means, job)
            handed = Handed(
                self.app, task, job, fence.session, timeout, on_paid=self._on_paid(fence), part=part, backoff=backoff,
            )  # fmt: skip
            executor, proceed = compose_farm()
            attempt = await self._apps.attempt(handed, executor)
        except Exception as error:
            return _not_begun(job, error)
        self._due_at = time.monotonic() + timeout
        self.ends_at = self._due_at + 2 * STUBBORN_SECONDS
        attempt.runner = asyncio.create_task(run_attempt(attempt, proceed))
        guard = asyncio.create_task(self._guard(fence, attempt))
        self._running = fence, attempt
        try:
            completion: Completion | None = await attempt.runner
        finally:
            # What is to be stored has its own time.
            self.ends_at = math.inf
            self._running = None
            guard.cancel()
        return completion

    def _on_paid(self, fence: Fence) -> Callable[[], Awaitable[None]]:
        noted = False

        async def note() -> None:
            """Note once that an answer was paid for, before the handler has it: a crash then is not the same again."""
            nonlocal noted
            if not noted:
                noted = True
                with contextlib.suppress(FenceLostError, StoreUnavailableError):
                    await self.app.runtime.stores.jobs.save_step(
                        fence.job, attempt=fence.attempt, session=fence.session, name=PAID,
                        value=json.dumps({"attempt": fence.attempt}),
                    )  # fmt: skip

        return note

    async def _guard(self, fence: Fence, attempt: Attempt) -> None:
        """Stop the call when its attempt does not own its job any more, or is to be cancelled."""
        jobs = self.app.runtime.stores.jobs
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            try:
                job = await jobs.running_job(fence.job, attempt=fence.attempt, session=fence.session)
            except StoreUnavailableError:
                continue
            except Exception:
                LOG.exception("whether attempt %d of job %s still owns it cannot be read", fence.attempt, fence.job)
                continue
            if job is None or job.cancel_requested:
                self._stop(attempt)

    def _on_stop(self, fence: Fence) -> None:
        if self._running is not None and self._running[0] == fence:
            self._stop(self._running[1])

    def _stop(self, attempt: Attempt) -> None:
        """End a call that nobody waits for: nothing is written for it."""
        self.ends_at = min(self.ends_at, time.monotonic() + STUBBORN_SECONDS)
        attempt.stop(StopReason.LEASE_LOST)

    async def thread_stays(self) -> bool:
        """Whether the handler goes on in its thread, which nothing can stop."""
        deadline = time.monotonic() + STUBBORN_SECONDS
        while self._apps.threads_busy and time.monotonic() < deadline:  # noqa: ASYNC110 - a thread sets no event
            await asyncio.sleep(0.02)
        return bool(self._apps.threads_busy)


def kept_end(fence: Fence, completion: Completion) -> str:
    """Return how a call ended as its step is stored."""
    return json.dumps({"attempt": fence.attempt, **json.loads(encode_completion(completion))})


def _not_begun(job: ClaimedJob, error: Exception) -> Completion:
    """Return the end of a call whose handler was not called: it could not be given what it needs."""
    if isinstance(error, HeadraceError) and error.transient:
        LOG.warning("job %s cannot begin yet: %s", job.id, error)
        return Completion(job.id, job.attempt, JobState.SCHEDULED, delay=AGAIN, batch_id=job.batch_id)
    error_of = describe(error, with_trace=not isinstance(error, HeadraceError))
    return Completion(job.id, job.attempt, JobState.FAILED, error=error_of, batch_id=job.batch_id)


def end_process(why: str) -> NoReturn:
    """End this process at once: what it ran is found to have died with it."""
    LOG.error("process %d ends: %s", os.getpid(), why)
    logging.shutdown()
    os._exit(1)
