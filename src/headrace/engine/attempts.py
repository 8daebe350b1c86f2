"""Makes attempts out of claimed jobs: context, executor and call."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Protocol
from uuid import UUID

from headrace.engine.attempt import Attempt, Proceed
from headrace.engine.context import CURRENT, Context
from headrace.engine.gathering import TIMER_MARGIN, Arguments, Gatherings
from headrace.engine.kept_lines import NOTHING_KEPT, LineKeeping
from headrace.engine.registry import Registry, RunsIn, TaskDef
from headrace.model.emitting import Emission
from headrace.model.farm import RESERVED
from headrace.model.job import ClaimedJob, Completion, JobError, JobState
from headrace.ports.clock import Clock
from headrace.ports.executor import Call, Executor, Farm
from headrace.ports.job_store import JobStore

#: A job that was running in this many crashes is suspect and runs alone in a child process.
SUSPECT_CRASHES = 2
#: A job of ours was running in this many crashes: no other process can run it, so it is convicted by these alone. They
#: are many, because a job that takes milliseconds is in few crashes of others.
MOST_CRASHES = 10
CONVICTED = JobError("poison", f"{MOST_CRASHES} workers that ran the job died")


@dataclass(slots=True)
class JobSteps:
    """Checkpoints of one attempt in the job store, written under its fence."""

    jobs: JobStore
    job_id: UUID
    attempt: int
    session: UUID
    prefix: str = ""

    async def load(self) -> dict[str, str]:
        """Return the stored steps."""
        return steps_below(self.prefix, await self.jobs.load_steps(self.job_id))

    async def save(self, name: str, value: str) -> str:
        """Store a step and return what is stored."""
        return await self.jobs.save_step(
            self.job_id, attempt=self.attempt, session=self.session, name=self.prefix + name, value=value
        )


def steps_below(prefix: str, steps: dict[str, str]) -> dict[str, str]:
    """Return the steps whose names begin with a prefix, by the rest of their names; none that executors keep.

    >>> steps_below("a/", {"a/x": "1", "b/x": "2"})
    {'x': '1'}
    """
    return {
        name[len(prefix) :]: value
        for name, value in steps.items()
        if name.startswith(prefix) and not name.startswith(RESERVED)
    }


class HandlerThreads:
    """Counts handlers that run in threads, by session, including those nobody waits for any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: Counter[UUID] = Counter()
        #: Called in a thread when the last handler thread of a session has ended.
        self.on_ended: dict[UUID, Callable[[], None]] = {}

    def running(self, session: UUID) -> int:
        """Return how many run for a session."""
        return self._running[session]

    @contextmanager
    def entered(self, session: UUID) -> Iterator[None]:
        """Count the calling thread while it is inside."""
        with self._lock:
            self._running[session] += 1
        try:
            yield
        finally:
            with self._lock:
                self._running[session] -= 1
            if not self._running[session] and (ended := self.on_ended.get(session)):
                ended()


class JoinsRuns(Protocol):
    """What jobs of runs are to a worker; `workflows.parts.RunParts` is it."""

    def task(self, name: str) -> TaskDef | None:
        """Return one of the engine's own tasks."""
        ...

    def join(self, attempt: Attempt, factory: AttemptFactory) -> None:
        """Let an attempt play its part in a run."""
        ...

    def ended(self, completions: Sequence[Completion], parked: Mapping[UUID, ClaimedJob]) -> None:
        """Note completions that have been recorded; `parked`: the jobs of runs among them that were parked, by id."""
        ...


@dataclass(slots=True)
class AttemptFactory:
    """Knows everything an attempt needs besides its job."""

    registry: Registry
    jobs: JobStore
    executors: dict[RunsIn, Executor]
    #: Runs suspects, each in a child of its own.
    alone: Executor
    proceed: Proceed
    clock: Clock
    max_processing_time: timedelta
    resources: Any = None
    runs: JoinsRuns | None = None
    emission: Emission = field(default_factory=Emission)
    keeping: LineKeeping = NOTHING_KEPT
    threads: HandlerThreads = field(default_factory=HandlerThreads)
    #: Runs the jobs of some queues, suspects too: they endanger its processes and not this one.
    farm: Farm | None = None
    gatherings: Gatherings = field(init=False)

    def __post_init__(self) -> None:
        self.gatherings = Gatherings(self._run_gathered, self.clock, self.resources)

    def farms_out(self, queue: str) -> bool:
        """Whether the jobs of a queue run on a farm."""
        return self.farm is not None and self.farm.serves(queue)

    def make(self, job: ClaimedJob, session: UUID) -> Attempt | None:
        """Return the attempt of a claimed job, or None when its task is not known here."""
        own = None if self.runs is None else self.runs.task(job.task)
        task = own or self.registry.get(job.task)
        if task is None:
            return None
        attempt = self._make(task, job, session)
        if own is not None and job.crashes >= MOST_CRASHES:
            attempt.call = replace(attempt.call, invoke=lambda: _convict(job))
        elif self.runs is not None and (own is not None or job.node is not None):
            self.runs.join(attempt, self)
        return attempt

    def _make(self, task: TaskDef, job: ClaimedJob, session: UUID) -> Attempt:
        timeout = job.timeout or self.max_processing_time
        context = Context(
            job_id=job.id, task=job.task, queue=job.queue, attempt=job.attempt, deadline=self.clock.now() + timeout,
            steps=JobSteps(self.jobs, job.id, job.attempt, session, job.step_prefix), resources=self.resources,
            batch_id=job.batch_id, index=job.ordinal, run=job.run, in_thread=task.runs_in is RunsIn.THREAD,
            last_try=job.failures + 1 >= job.max_attempts, emission=self.emission, keeping=self.keeping,
        )  # fmt: skip
        if self.farm is not None and self.farm.serves(job.queue):
            seconds = timeout.total_seconds()
            call = Call(job, session, timeout=seconds, target=task.target, invoke=_never, on_activity=lambda: None)
            return Attempt(job, task, context, self.farm, call, remote=True)
        # A function that no other process can find runs here, whatever it is suspected of.
        suspect = job.crashes >= SUSPECT_CRASHES and task.importable
        if task.gather is not None and not suspect:
            return self._make_gathered(task, job, context, session)
        executor = self.alone if suspect else self.executors[task.runs_in]
        invoke = self._invoke_sync if task.runs_in is RunsIn.THREAD else self._invoke_async
        call = Call(
            job=job, session=session, timeout=timeout.total_seconds(), target=task.target,
            invoke=lambda: invoke(task, job, context, session), on_activity=lambda: context.on_activity(),
        )  # fmt: skip
        return Attempt(job, task, context, executor, call)

    def _make_gathered(self, task: TaskDef, job: ClaimedJob, context: Context, session: UUID) -> Attempt:
        """Return an attempt that waits for its entry of a call with others."""
        assert task.gather is not None
        seconds = (job.timeout or self.max_processing_time).total_seconds()
        call = Call(
            job=job, session=session, timeout=seconds + task.gather.max_wait.total_seconds() + TIMER_MARGIN,
            target=task.target, invoke=lambda: self.gatherings.join(attempt, session, seconds),
            on_activity=lambda: context.on_activity(),
        )  # fmt: skip
        attempt = Attempt(job, task, context, self.executors[RunsIn.LOOP], call)
        return attempt

    async def _run_gathered(self, task: TaskDef, job: ClaimedJob, session: UUID, arguments: Arguments) -> Any:
        args, kwargs = arguments
        if task.runs_in is RunsIn.LOOP:
            return await task.function(*args, **kwargs)

        def invoke() -> Any:
            with self.threads.entered(session):
                return call_plainly(task.function, *args, **kwargs)

        seconds = (job.timeout or self.max_processing_time).total_seconds()
        call = Call(job, session, timeout=seconds, target=task.target, invoke=invoke, on_activity=lambda: None)
        return await self.executors[task.runs_in].run(call)

    async def _invoke_async(self, task: TaskDef, job: ClaimedJob, context: Context, _session: UUID) -> Any:
        args, kwargs = task.codec.decode(job.args, context)
        CURRENT.set(context)
        return await task.function(*args, **kwargs)

    def _invoke_sync(self, task: TaskDef, job: ClaimedJob, context: Context, session: UUID) -> Any:
        with self.threads.entered(session):
            args, kwargs = task.codec.decode(job.args, context)
            CURRENT.set(context)
            return call_plainly(task.function, *args, **kwargs)


def _never() -> None:
    raise AssertionError("run by the farm")


async def _convict(job: ClaimedJob) -> Completion:
    """End a job instead of running it; what that sets going in its run is for the settler."""
    return Completion(job.id, job.attempt, JobState.FAILED, error=CONVICTED)


def call_plainly(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a sync handler; StopIteration becomes RuntimeError, as in coroutines, for no future carries it."""
    try:
        return function(*args, **kwargs)
    except StopIteration as error:
        raise RuntimeError("the handler raised StopIteration") from error
