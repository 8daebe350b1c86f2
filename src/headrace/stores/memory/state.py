"""The shared tables of a memory store, and the elementary moves of a job between them.

Every verb of the ports runs under one lock without giving way in between: it is atomic for other tasks and threads.
"""

from __future__ import annotations

import functools
import heapq
import threading
from collections.abc import Awaitable, Callable, Coroutine
from datetime import datetime
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar
from uuid import UUID, uuid4

from headrace.model.attempt_log import MAX_ATTEMPTS
from headrace.model.batch import held_by
from headrace.model.job import AttemptRecord, JobError, JobState, Park
from headrace.model.priority import head_start
from headrace.model.session import Role
from headrace.ports.clock import Clock
from headrace.stores.memory.lanes import Lanes
from headrace.stores.memory.ledger import Ledger
from headrace.stores.memory.limits import Limits
from headrace.stores.memory.names import Names
from headrace.stores.memory.outbox_rows import OutboxTable
from headrace.stores.memory.row_locks import RowLocks, Turn, straight_on
from headrace.stores.memory.rows import Batch, Finished, Job, Key, Leader, QueueSetting, Session
from headrace.stores.memory.runs import Runs
from headrace.stores.memory.waiting_room import WaitingRoom

P = ParamSpec("P")
T = TypeVar("T")
#: Where time makes a job ready.
TIMED = (JobState.SCHEDULED, JobState.PARKED)


class State:
    """Tables as dicts. `running` is an index: what runs, and so what a cap or a session uses, is derived from it."""

    def __init__(self, clock: Clock) -> None:
        self.id = uuid4().hex
        self.lock = threading.RLock()
        self.clock = clock
        self.jobs: dict[UUID, Job] = {}
        self.ready = Lanes()
        self.scheduled: list[tuple[datetime, UUID]] = []
        self.running: dict[UUID, Job] = {}
        #: Jobs that wait for another run and keep their in-order key: an index too.
        self.keeping: dict[UUID, Job] = {}
        self.parked = WaitingRoom()
        self.finished: dict[UUID, Finished] = {}
        self.attempts: dict[UUID, list[AttemptRecord]] = {}
        #: What was logged, by job and attempt.
        self.logs: dict[UUID, dict[int, str]] = {}
        self.steps: dict[UUID, dict[str, str]] = {}
        #: The retry of each job that was retried.
        self.retries: dict[UUID, UUID] = {}
        self.keys: dict[tuple[str, str], Key] = {}
        #: When each answer of the memo was stored.
        self.answers: dict[str, datetime] = {}
        self.ledger = Ledger()
        self.names = Names()
        self.batches: dict[UUID, Batch] = {}
        self.runs = Runs()
        self.sessions: dict[UUID, Session] = {}
        self.leaders: dict[Role, Leader] = {}
        self.outbox = OutboxTable()
        self.queues: dict[str, QueueSetting] = {}
        self.limits = Limits()
        self.limit_locks = RowLocks()
        #: What a verb awaits between the statements it would be elsewhere; see `row_locks`.
        self.turn: Turn = straight_on
        self._commits = 0

    def now(self) -> datetime:
        """Return the store's time."""
        return self.clock.now()

    def add(self, job: Job) -> None:
        """Insert a job, scheduled when its `run_at` lies ahead, else ready; the first with a gate gates its queue."""
        self.jobs[job.id] = job
        if job.spec.gate is not None:
            self.limits.gated.add(job.spec.queue)
        if job.batch_id is not None:
            self.batches[job.batch_id].live[job.id] = job
        self.runs.add_job(job)
        if job.retry_of is not None:
            self._supersede(job.retry_of, job)
        self.wait(job, until=job.run_at)

    def _supersede(self, original: UUID, retry: Job) -> None:
        """Let the retry count in its batch in place of the job it repeats."""
        self.retries[original] = retry.id
        old = self.finished[original]
        if old.job.batch_id is not None:
            self.batches[old.job.batch_id].counts[old.state] -= 1

    def wait(self, job: Job, *, until: datetime | None) -> None:
        """Make a job scheduled when `until` lies ahead, else ready now."""
        self._leave_session(job)
        if until is not None and until > self.now():
            job.state = JobState.SCHEDULED
            self._put_by(job, until=until)
        else:
            self.queue_up(job, self.now())

    def park(self, job: Job, park: Park) -> None:
        """Make a job parked, or ready at once where its signal has come."""
        if park.key is not None and park.key in self.parked.signals:
            self.queue_up(job, self.now())
            return
        self._leave_session(job)
        job.state, job.parked_on = JobState.PARKED, park.key
        self.parked.enter(job)
        self._put_by(job, until=None if park.wait is None else self.now() + park.wait)

    def _put_by(self, job: Job, *, until: datetime | None) -> None:
        job.run_at = until
        if until is not None:
            heapq.heappush(self.scheduled, (until, job.id))
        if job.keeps_place:
            self.keeping[job.id] = job

    def queue_up(self, job: Job, ready_at: datetime) -> None:
        """Make a job ready at the place of its ready time, or at the one it keeps."""
        kept = job.sort_at if job.keeps_place else None
        self.make_ready(job, sort_at=kept or ready_at - head_start(job.spec.priority))

    def make_ready(self, job: Job, *, sort_at: datetime) -> None:
        """Make a job ready at its place in the claim order, or held there while its batch is paused."""
        self._leave_session(job)
        job.state, job.sort_at = JobState.READY, sort_at
        if job.batch_id is not None and self.batches[job.batch_id].paused_at is not None:
            self.hold(job)
        else:
            self.ready.push(job)

    def hold(self, job: Job) -> None:
        """Park a ready job until its batch is resumed; the caller takes it from its lane."""
        assert job.batch_id is not None
        job.state, job.parked_on = JobState.PARKED, held_by(job.batch_id)
        self.parked.enter(job)
        self._put_by(job, until=None)

    def _leave_session(self, job: Job) -> None:
        self.running.pop(job.id, None)
        self.keeping.pop(job.id, None)
        self.parked.leave(job)
        job.session = job.started_at = None

    def start(self, job: Job, session: UUID) -> None:
        """Make a ready job running: a new attempt of `session`."""
        job.state, job.session, job.started_at = JobState.RUNNING, session, self.now()
        job.attempt += 1
        self.running[job.id] = job

    def finish(
        self,
        job: Job,
        state: JobState,
        *,
        result: str | None = None,
        error: JobError | None = None,
        usage: str | None = None,
    ) -> None:
        """Move a job to history: its one final state. One of a run is unsettled from then on."""
        self._commits += 1
        row = Finished(job, state, self._commits, self.now(), result, error, usage)
        del self.jobs[job.id]
        self.running.pop(job.id, None)
        self.keeping.pop(job.id, None)
        self.parked.leave(job)
        self.finished[job.id] = row
        self.runs.end_job(row)
        if job.batch_id is not None:
            batch = self.batches[job.batch_id]
            del batch.live[job.id]
            batch.ended.append(row)
            batch.counts[state] += 1

    def record_attempt(self, job: Job, outcome: str, error: JobError | None = None) -> None:
        """Keep how an attempt ended that did not end its job."""
        record = AttemptRecord(job.attempt, outcome, job.started_at, self.now(), job.session, error)
        self.attempts.setdefault(job.id, []).append(record)

    def keep_log(self, job: Job, log: str, *, goes_back: bool) -> None:
        """Keep what an attempt logged; of a job that goes back the last ones, so that there is room for one more."""
        kept = self.logs.setdefault(job.id, {})
        kept.setdefault(job.attempt, log)
        for attempt in [each for each in kept if goes_back and each <= job.attempt - MAX_ATTEMPTS + 1]:
            del kept[attempt]

    def alive(self, session: UUID | None) -> bool:
        """Whether the lease of a session has not ended."""
        row = self.sessions.get(session) if session else None
        return row is not None and row.expires_at > self.now()


class OnState(Protocol):
    """An adapter over the shared tables."""

    _state: State


Adapter = TypeVar("Adapter", bound=OnState)


def atomic(
    verb: Callable[Concatenate[Adapter, P], Awaitable[T]],
) -> Callable[Concatenate[Adapter, P], Coroutine[Any, Any, T]]:
    """Run a verb under the lock of its state; the verb itself must never suspend, but for a turn."""

    @functools.wraps(verb)
    async def locked(self: Adapter, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self._state.lock:
            return await verb(self, *args, **kwargs)

    return locked
