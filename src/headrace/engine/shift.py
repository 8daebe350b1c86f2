"""A shift: one session of a worker, from its registration to its end.

It owns the lease, the claimers, the attempts that run and their acks. When the lease is lost the shift is over: its
handlers are stopped, nothing more is written, and the worker begins another one under a fresh session.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import socket
from collections import deque
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any
from uuid import UUID

from headrace.engine.acks import Acks
from headrace.engine.attempt import Attempt, StopReason, describe, run_attempt, stopped
from headrace.engine.attempts import AttemptFactory
from headrace.engine.claimer import Claimer
from headrace.engine.host import this_process
from headrace.engine.job_log import log_end, log_start
from headrace.engine.loop_watch import LoopWatch
from headrace.engine.loops.heartbeat import Heartbeat, HeartbeatThread, Lease
from headrace.engine.slot_use import AttemptWaits, SlotUse
from headrace.engine.supply import Admit
from headrace.engine.telemetry import Telemetry
from headrace.engine.workflows.spawned import queues_of
from headrace.model.durations import format_duration
from headrace.model.errors import BreakerOpenError
from headrace.model.job import Claim, ClaimedJob, Completion, JobState
from headrace.model.session import NewSession
from headrace.model.version import VERSION
from headrace.ports.clock import Clock
from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.worker")

#: A job whose task this worker does not know waits this long: another version of the code may know it.
UNKNOWN_TASK_DELAY = timedelta(seconds=5)
#: Suspects run in so many children at once. A crash makes suspects of a whole worker's jobs: a child for each of them
#: would need more memory than the poison.
MAX_ALONE = 4
#: With so many endings not yet recorded no further job is claimed.
MAX_UNSENT = 1_000
#: Other workers are told at most this often that a queue has more than there are slots for here.
TELL_SECONDS = 0.05
#: At the end of a shift acks may still be sent this long.
DRAIN_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class ShiftOptions:
    """How a worker claims; see `[worker]` and `[queue]` in the settings."""

    #: slots by queue, to begin with
    queues: dict[str, int]
    batch_size: int = 100
    poll_interval: timedelta = timedelta(milliseconds=500)
    lease: timedelta = timedelta(seconds=12)
    heartbeat_interval: timedelta = timedelta(seconds=3)


class Shift:
    """Runs jobs under one session."""

    def __init__(  # noqa: PLR0913 - collaborators arrive by constructor
        self,
        stores: Stores,
        factory: AttemptFactory,
        options: ShiftOptions,
        *,
        admit: Admit,
        clock: Clock,
        telemetry: Telemetry,
        on_lost: Callable[[], None],
        on_scheduled: Callable[[float], None],
    ) -> None:
        self._stores = stores
        self._admit = admit
        self._factory = factory
        self._options = options
        self._clock = clock
        self._telemetry = telemetry
        self._on_lost = on_lost
        self._on_scheduled = on_scheduled
        self._session = NewSession(this_process(), socket.gethostname(), options.queues, options.lease)
        self._acks = Acks(
            stores, self.id, telemetry, claims=self, running_batches=self._running_batches, on_sent=self._after_sent
        )
        self._claimers = {queue: self._claimer(queue, slots) for queue, slots in options.queues.items()}
        self._turns = deque(self._claimers)
        self._attempts: dict[tuple[UUID, int], Attempt] = {}
        self._use = {queue: SlotUse(clock) for queue in self._claimers}
        self._all_ended = asyncio.Event()
        self._all_ended.set()
        self._thread: HeartbeatThread | None = None
        self._loop_watch: LoopWatch | None = None
        self._heartbeat_task: asyncio.Task[None] | None = None
        self._lost = False
        #: Queues of slots that stay taken until the acks have caught up.
        self._held_slots: list[str] = []
        #: Queues of jobs that came through a gate and wait for their acks, by fence.
        self._gated: dict[tuple[UUID, int], str] = {}
        #: Jobs of runs that are being parked.
        self._parked: dict[UUID, ClaimedJob] = {}
        #: Queues of which other workers were told a moment ago, and whether to tell them once more.
        self._told: dict[str, bool] = {}

    @property
    def id(self) -> UUID:
        """The session."""
        return self._session.id

    @property
    def queues(self) -> dict[str, int]:
        """Slots by queue, as they are now."""
        return {queue: claimer.slots for queue, claimer in self._claimers.items()}

    def resize(self, queue: str, slots: int) -> None:
        """Have so many slots for a queue. Nothing is stopped: where more run, none is claimed before enough ended."""
        self._claimers[queue].resize(slots)

    def look_at_slots(self, queue: str) -> tuple[int, bool]:
        """Return how the slots of a queue were used since this was asked last; see `SlotUse.look`."""
        return self._use[queue].look()

    def _claimer(self, queue: str, slots: int) -> Claimer:
        claim = Claim(self.id, queue, slots)
        return Claimer(
            self._stores.jobs, claim, batch_size=self._options.batch_size, poll_interval=self._options.poll_interval,
            telemetry=self._telemetry, on_claimed=self._begin, known=lambda: self._acks.pending | set(self._attempts),
            acks_waiting=lambda: self._acks.unsent, admit=self._admit,
            gate_expected=self._factory.registry.expects_gate(queue), on_more=lambda: self._tell(queue),
            room=partial(self._room, queue) if self._factory.farms_out(queue) else None,
        )  # fmt: skip

    def _room(self, queue: str) -> int:
        """Return how many more jobs of a queue the farm can start beside those of all queues that it has from here."""
        assert self._factory.farm is not None
        taken = {name: one.taken for name, one in self._claimers.items() if self._factory.farms_out(name)}
        return self._factory.farm.room(queue, taken)

    async def start(self) -> None:
        """Register the session and begin to claim."""
        # The lease begins at the store, not before this moment and perhaps much earlier than its answer.
        sent_at = self._clock.monotonic()
        await self._stores.sessions.register_session(self._session)
        # With it readers of the session tell the age of the last heartbeat.
        self._telemetry.gauge("headrace.sessions.lease_ms", round(self._options.lease.total_seconds() * 1000))
        self._start_heartbeat(sent_at)
        self._acks.start()
        self._factory.gatherings.open(self.id, is_full=self._is_full, telemetry=self._telemetry)
        for claimer in self._claimers.values():
            claimer.start()

    def _start_heartbeat(self, renewed_at: float) -> None:
        loop = asyncio.get_running_loop()
        lease = Lease(
            self.id, self._options.lease, self._options.heartbeat_interval, stats=self._stats,
            on_cancel=partial(_call_on, loop, self._cancel), on_lost=partial(_call_on, loop, self._lose),
        )  # fmt: skip
        heartbeat = Heartbeat(lease, self._clock, renewed_at=renewed_at)
        if self._stores.private_sessions is None:
            self._heartbeat_task = asyncio.create_task(heartbeat.run(self._stores.sessions), name="headrace-heartbeat")
            return
        self._loop_watch = LoopWatch(loop, self._clock, self._telemetry)
        self._thread = HeartbeatThread(heartbeat, self._stores.private_sessions)
        self._factory.threads.on_ended[self.id] = self._report_stopped
        self._thread.start()

    def _stats(self) -> dict[str, Any]:
        """Return what the worker counted, with the gauges of this moment; called in the thread of the heartbeat."""
        self._telemetry.gauge("headrace.jobs.unacked", self._acks.unsent)
        self._telemetry.gauge("headrace.jobs.running", len(self._attempts))
        if self._loop_watch is not None:
            self._loop_watch.look()
        return self._telemetry.snapshot() | {"headrace.version": VERSION}

    def hint(self, queue: str) -> None:
        """Look for jobs of `queue` now."""
        if queue in self._claimers:
            self._claimers[queue].hint()

    def offer(self) -> Claim | None:
        """Return a claim for the acks to take along, of each queue in its turn; see `Claimer.offer`."""
        for _ in range(len(self._turns)):
            queue = self._turns[0]
            self._turns.rotate(-1)
            if (claim := self._claimers[queue].offer()) is not None:
                return claim
        return None

    def settle(self, claim: Claim, jobs: list[ClaimedJob] | None) -> None:
        """Give a claim's answer to its claimer."""
        self._claimers[claim.queue].settle(claim, jobs)

    def _is_full(self, queue: str) -> bool:
        """Whether no slot of a queue is free that could bring another job to a gather."""
        running = sum(attempt.job.queue == queue for attempt in self._attempts.values())
        return running >= self._claimers[queue].slots

    def _running_batches(self) -> set[UUID | None]:
        running = {attempt.job.batch_id for attempt in self._attempts.values()}
        return running.union(job.batch_id for jobs in self._unbegun for job in jobs)

    @property
    def _unbegun(self) -> list[Collection[ClaimedJob]]:
        return [claimer.unbegun for claimer in self._claimers.values()]

    @property
    def running(self) -> int:
        """Attempts that run."""
        return len(self._attempts)

    @property
    def quiet(self) -> bool:
        """Whether nothing runs and nothing waits to be recorded."""
        return not self._attempts and not self._acks.unsent and not any(self._unbegun)

    def _begin(self, job: ClaimedJob) -> None:
        """Start the attempt of a job just claimed, unless the lease was lost meanwhile: then it is rescued."""
        if self._lost:
            self._claimers[job.queue].release()
            return
        if job.refused is not None:
            self._refuse(job, job.refused)
            return
        attempt = self._factory.make(job, self.id)
        if attempt is None:
            LOG.warning("no task %r in this worker; job %s is left to others", job.task, job.id)
            self._put_back(job, UNKNOWN_TASK_DELAY)
            return
        if attempt.executor is self._factory.alone and self._alone >= MAX_ALONE:
            self._put_back(job, until_room(job))
            return
        # Under its fence: the sweep may have ended an earlier attempt of the job that still runs here.
        self._attempts[job.id, job.attempt] = attempt
        self._all_ended.clear()
        attempt.slot = waits = self._use[job.queue].begin()
        runner = self._run(attempt, waits, log_start(attempt, self._clock))
        attempt.runner = asyncio.get_running_loop().create_task(runner)

    @property
    def _alone(self) -> int:
        return sum(attempt.executor is self._factory.alone for attempt in self._attempts.values())

    def _put_back(self, job: ClaimedJob, delay: timedelta) -> None:
        self._put(job, Completion(job.id, job.attempt, JobState.SCHEDULED, delay=delay, batch_id=job.batch_id))
        self._claimers[job.queue].release()

    def _refuse(self, job: ClaimedJob, reason: str) -> None:
        """Fail a job behind an open breaker, as its rule says."""
        error = describe(BreakerOpenError(reason))
        self._put(job, Completion(job.id, job.attempt, JobState.FAILED, error=error, batch_id=job.batch_id))
        self._claimers[job.queue].release()

    def _put(self, job: ClaimedJob, completion: Completion) -> None:
        """Send an ending; where the job came through a gate, look behind it once it is recorded."""
        if job.gated:
            self._gated[completion.job_id, completion.attempt] = job.queue
        if completion.state is JobState.PARKED and job.node is not None:
            self._parked[job.id] = job
        self._acks.put(completion)

    async def _run(self, attempt: Attempt, waits: AttemptWaits, started: float | None) -> None:
        limited = False
        try:
            completion = await run_attempt(attempt, self._factory.proceed)
            limited = completion is not None and completion.limited
            if completion is not None and not self._lost:
                self._put(attempt.job, completion)
                log_end(attempt, completion, self._clock, started)
        except Exception:
            # Not the handler's error, ours: the job is left to the sweeps rather than ended wrongly.
            LOG.exception("attempt %d of job %s could not be ended", attempt.job.attempt, attempt.job.id)
        finally:
            self._use[attempt.job.queue].end(waits, limited=limited)
            self._end(attempt)

    def _end(self, attempt: Attempt) -> None:
        """Free the slot of an attempt that is over."""
        del self._attempts[attempt.job.id, attempt.job.attempt]
        self._free(attempt.job.queue)
        if not self._attempts:
            self._all_ended.set()
            self._report_stopped()

    def _free(self, queue: str) -> None:
        """Free a slot, unless so much waits to be recorded that a crash would repeat too much: then after the acks."""
        if self._acks.unsent >= MAX_UNSENT:
            self._held_slots.append(queue)
        else:
            self._release_slot(queue)

    def _release_slot(self, queue: str) -> None:
        self._claimers[queue].release()
        if self._factory.farms_out(queue):
            # Its slots are for several queues.
            for claimer in self._claimers.values():
                claimer.look()

    def _after_sent(self, sent: list[Completion], accepted: list[Completion]) -> None:
        while self._held_slots and self._acks.unsent < MAX_UNSENT:
            self._release_slot(self._held_slots.pop())
        for completion in sent:
            if completion.state is JobState.SCHEDULED:
                self._on_scheduled(completion.delay.total_seconds())
            elif completion.state is JobState.READY:
                self._telemetry.count("headrace.jobs.release")
            elif completion.state is JobState.PARKED:
                self._after_parked(completion)
        self._follow_runs(sent, accepted)
        if self._gated:
            self._make_room(sent)

    def _after_parked(self, completion: Completion) -> None:
        """The time of a parked job may come before the stager's next look; its signal may have come before it."""
        park = completion.park
        if park is not None and park.wait is not None:
            self._on_scheduled(park.wait.total_seconds())

    def _follow_runs(self, sent: list[Completion], accepted: list[Completion]) -> None:
        """Look for jobs that endings set going, here at once and elsewhere soon, and note what became of runs.

        What the store did not take, or took with an answer that was lost, may have set something going all the same.
        """
        effects = [completion.effects for completion in sent if completion.effects is not None]
        if not effects and not self._parked:
            return
        for queue in sorted(queues_of(effects)):
            self.hint(queue)
            self._tell(queue)
        parked = {one.job_id: job for one in sent if (job := self._parked.pop(one.job_id, None)) is not None}
        if self._factory.runs is not None:
            self._factory.runs.ended(accepted, parked)

    def _make_room(self, sent: list[Completion]) -> None:
        ended = [self._gated.pop((completion.job_id, completion.attempt), None) for completion in sent]
        # In an order that is the same in every process: simulations replay.
        for queue in dict.fromkeys(queue for queue in ended if queue is not None):
            self._claimers[queue].make_room()

    def _tell(self, queue: str) -> None:
        """Tell other workers, and not for every job, that a queue has more than there are slots for here."""
        if queue in self._told:
            self._told[queue] = True
            return
        self._told[queue] = False
        self._stores.notifier.hint(f"queue:{queue}")
        asyncio.get_running_loop().call_later(TELL_SECONDS, self._tell_again, queue)

    def _tell_again(self, queue: str) -> None:
        if self._told.pop(queue):
            self._tell(queue)

    def _cancel(self, job_ids: tuple[UUID, ...]) -> None:
        for attempt in list(self._attempts.values()):
            if attempt.job.id in job_ids:
                attempt.stop(StopReason.CANCELLED)

    def _lose(self) -> None:
        """The lease is lost: stop handlers, write nothing more."""
        if self._lost:
            return
        self._lost = True
        self._telemetry.count("headrace.sessions.lost")
        LOG.error("session %s lost its lease: stopping %d handlers", self.id, len(self._attempts))
        for attempt in list(self._attempts.values()):
            attempt.stop(StopReason.LEASE_LOST)
        self._report_stopped()
        self._on_lost()

    def _report_stopped(self) -> None:
        busy = self._attempts or self._factory.threads.running(self.id)
        if self._thread is not None and self._lost and not busy:
            self._thread.handlers_stopped.set()
            self._factory.threads.on_ended.pop(self.id, None)

    async def abandon(self) -> None:
        """End a shift whose lease is lost."""
        await asyncio.gather(*(claimer.stop() for claimer in self._claimers.values()))
        for attempt in list(self._attempts.values()):
            attempt.stop(StopReason.LEASE_LOST)
        await self._all_ended.wait()
        self._factory.gatherings.close(self.id)
        self._report_stopped()
        await self._count_refused()
        await self._acks.stop()

    async def _count_refused(self) -> None:
        """Give what had ended before the loss one chance: the fence decides, and refusals are counted."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self._options.lease.total_seconds() / 6):
                await self._acks.drain()

    def end_claiming(self) -> None:
        """Begin no claim any more; `stop` waits for those under way."""
        for claimer in self._claimers.values():
            claimer.end()

    async def stop(self, grace: timedelta) -> None:
        """Claim no more, let handlers end within `grace`, release the others uncharged, and close the session."""
        await asyncio.gather(*(claimer.stop() for claimer in self._claimers.values()))
        self._release_waiting()
        for attempt in self._attempts.values():
            attempt.closing = True
        try:
            async with asyncio.timeout(grace.total_seconds()):
                await self._all_ended.wait()
        except TimeoutError:
            LOG.warning("releasing %d jobs that did not end within %s", len(self._attempts), format_duration(grace))
            await self._release()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._acks.drain()
        await self._acks.stop()
        self._factory.gatherings.close(self.id)
        await self._stop_heartbeat()
        await self._stores.sessions.close_session(self.id)

    def _release_waiting(self) -> None:
        """Release jobs that wait in a gather whose call has not begun."""
        for fence, attempt in list(self._attempts.items()):
            if attempt.task.gather is not None and not self._factory.gatherings.has_begun(fence):
                attempt.stop(StopReason.RELEASED)

    async def _release(self) -> None:
        """Stop handlers; those that do not heed it are released as they are, and end with the process."""
        for attempt in list(self._attempts.values()):
            attempt.stop(StopReason.RELEASED)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                await self._all_ended.wait()
        for attempt in self._attempts.values():
            LOG.error("the handler of job %s ignores that it was stopped", attempt.job.id)
            if (completion := stopped(attempt)) is not None:
                self._put(attempt.job, completion)

    async def _stop_heartbeat(self) -> None:
        if self._thread is not None:
            self._factory.threads.on_ended.pop(self.id, None)
            await self._thread.stop()
        if self._heartbeat_task is not None:
            self._heartbeat_task.cancel()
            await asyncio.gather(self._heartbeat_task, return_exceptions=True)


def until_room(job: ClaimedJob) -> timedelta:
    """Return how long a suspect waits for a free child: about 1 s, and longer where the rooms are long taken."""
    tries = job.attempt - job.crashes - job.failures
    return timedelta(seconds=min(max(1.0, tries / 10), 30.0) * random.uniform(0.5, 1.5))  # noqa: S311 - jitter


def _call_on(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *args: Any) -> None:
    """Call `function` on `loop` from any thread; nothing happens when the loop has ended."""
    with contextlib.suppress(RuntimeError):
        loop.call_soon_threadsafe(function, *args)
