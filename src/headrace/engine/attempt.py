"""One attempt of one job: decode → run through the middleware → encode the ending. It knows no store and no retry."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, Protocol
from uuid import UUID

from headrace.engine.context import Context
from headrace.engine.registry import TaskDef
from headrace.model.backoff import Backoff
from headrace.model.durations import parse_duration
from headrace.model.errors import HeadraceError, InvalidInputError
from headrace.model.job import ClaimedJob, Completion, JobError, JobState, Park
from headrace.model.outcome import Cancel, Done, Fail, Snooze, check_port
from headrace.model.parking import SlotWaits
from headrace.model.payload import MAX_PAYLOAD_BYTES, storable
from headrace.ports.executor import Call, Executor

_MAX_TRACE = 8_000
_MAX_MESSAGE = 2_000


class StopReason(Enum):
    """Why a running attempt was cancelled from outside."""

    #: somebody cancelled the job
    CANCELLED = auto()
    #: the worker shuts down and the grace time is over
    RELEASED = auto()
    #: the session's lease ended: nothing may be written
    LEASE_LOST = auto()


@dataclass(slots=True, eq=False)
class SharedCall:
    """One call of a handler for several attempts: what there is to say of the call, and not of each of them."""

    #: Job and attempt of the one that joined it last.
    last: tuple[UUID, int]
    #: What it answered for each, a value or an error; empty while it runs.
    endings: Sequence[Any] = ()
    #: Tells circuit breakers of it, once for all.
    report: asyncio.Future[None] | None = None


class RunPart(Protocol):
    """An attempt's part in a run of a workflow."""

    @property
    def most_bytes(self) -> int:
        """Bytes of JSON that the result may have."""
        ...

    async def run(self, attempt: Attempt, proceed: Proceed) -> Any:
        """Give the handler its arguments and run it, or return what it would."""
        ...

    async def leave(self, attempt: Attempt, completion: Completion) -> Completion | None:
        """Return the completion with what it sets going in the run, or None when nothing may be written."""
        ...


@dataclass(slots=True)
class Attempt:
    """An attempt while it runs."""

    job: ClaimedJob
    task: TaskDef
    context: Context
    executor: Executor
    call: Call
    stop_reason: StopReason | None = None
    #: Set by middleware, kept with the job.
    usage: str | None = None
    #: Set by middleware: what it says of what stands behind the task's breakers.
    works: bool | None = None
    #: Set by middleware: whether it leaves its slot for a quota or a budget.
    limited: bool = False
    #: Told of waits for those in its slot.
    slot: SlotWaits | None = field(default=None, repr=False)
    #: Called when a model's answer was paid for and stored, before the handler has it.
    on_paid: Callable[[], Awaitable[None]] | None = field(default=None, repr=False)
    #: Whether a checkpoint or an answer was stored.
    progressed: bool = False
    #: The call that it shares with others, once that began.
    shared: SharedCall | None = field(default=None, repr=False)
    runner: asyncio.Task[Any] | None = field(default=None, repr=False)
    #: Whether the runner has taken its first step.
    begun: bool = False
    #: What it is of a run of a workflow.
    part: RunPart | None = field(default=None, repr=False)
    #: Retries by this instead of its task's.
    backoff: Backoff | None = None
    #: Whether its handler has ended and only its ending is worked out: that is not stopped any more.
    leaving: bool = False
    #: Whether its worker is about to end: what a run could still begin is left to another one.
    closing: bool = False
    #: Whether a farm runs it: that keeps its time, and stores what a node of a run returned.
    remote: bool = False

    def stop(self, reason: StopReason) -> None:
        """Ask the handler to end, for the first reason given."""
        if self.stop_reason is None:
            self.stop_reason = reason
            self.context.cancelled = True
            # A task cancelled before its first step would end without a word; `run_attempt` looks at the reason first.
            if self.runner is not None and self.begun and not self.leaving:
                self.runner.cancel()


@dataclass(frozen=True, slots=True)
class Failed:
    """An attempt that ended with an error, and when to try again (None: never)."""

    error: JobError
    retry_in: Any = None
    lone_crash: bool = False
    progressed: bool = False
    charged: bool = True


Proceed = Callable[[Attempt], Coroutine[Any, Any, Any]]
Middleware = Callable[[Attempt, Proceed], Coroutine[Any, Any, Any]]


async def execute(attempt: Attempt) -> Any:
    """Run the handler where its task wants it: the innermost step of every attempt."""
    return await attempt.executor.run(attempt.call)


def compose(middlewares: list[Middleware]) -> Proceed:
    """Fold middlewares round `execute`, the first outermost."""
    proceed: Proceed = execute
    for middleware in reversed(middlewares):
        proceed = _wrap(middleware, proceed)
    return proceed


def _wrap(middleware: Middleware, inner: Proceed) -> Proceed:
    def run(attempt: Attempt) -> Coroutine[Any, Any, Any]:
        return middleware(attempt, inner)

    return run


async def run_attempt(attempt: Attempt, proceed: Proceed) -> Completion | None:
    """Run an attempt to its end and return what to write, or None when nothing may be written."""
    attempt.begun = True
    completion = stopped(attempt) if attempt.stop_reason is not None else await _run(attempt, proceed)
    if completion is None or attempt.part is None or not completion.state.final:
        return completion
    attempt.leaving = True
    return await attempt.part.leave(attempt, completion)


async def _run(attempt: Attempt, proceed: Proceed) -> Completion | None:
    if attempt.job.cancel_requested:
        return _completion(attempt, JobState.CANCELLED, error=JobError("cancelled", "cancelled before it started"))
    try:
        return _ended(attempt, await proceed(attempt))
    except asyncio.CancelledError:
        return stopped(attempt)
    except Exception as error:
        # What the handler ended with cannot be read: another run would end no better.
        trace = not isinstance(error, HeadraceError)
        return _ended(attempt, Failed(describe(error, with_trace=trace)))


def stopped(attempt: Attempt) -> Completion | None:
    """Return what to write for an attempt that was stopped, also before its first step."""
    match attempt.stop_reason:
        case StopReason.CANCELLED:
            return _completion(attempt, JobState.CANCELLED, error=JobError("cancelled", "cancelled while it ran"))
        case StopReason.LEASE_LOST:
            return None
        case _:
            return _released(attempt)


def _released(attempt: Attempt) -> Completion:
    if attempt.task.spec.at_most_once:
        error = JobError("worker_lost", "the worker stopped while the handler ran, and it may run at most once")
        return _completion(attempt, JobState.FAILED, error=error)
    return _completion(attempt, JobState.READY)


def _ended(attempt: Attempt, ending: Any) -> Completion | None:
    if attempt.stop_reason is StopReason.LEASE_LOST:
        return None
    match ending:
        case Completion():
            return _with_log(attempt, ending)
        case Failed():
            return _failed(attempt, ending)
        case Park():
            return _completion(attempt, JobState.PARKED, park=ending)
        case Snooze():
            delay = parse_duration(ending.delay, field="Snooze.delay")
            return _completion(attempt, JobState.SCHEDULED, delay=delay)
        case Cancel():
            return _completion(attempt, JobState.CANCELLED, error=asked("cancelled", "Cancel.reason", ending.reason))
        case Fail():
            return _completion(attempt, JobState.FAILED, error=asked("failed", "Fail.reason", ending.reason))
        case _:
            return _succeeded(attempt, ending if isinstance(ending, Done) else Done(ending))


def _succeeded(attempt: Attempt, done: Done) -> Completion:
    most = MAX_PAYLOAD_BYTES if attempt.part is None else attempt.part.most_bytes
    try:
        result = attempt.task.codec.encode_result(done.result, most=most)
        check_port(done.port)
    except HeadraceError as error:
        return _completion(attempt, JobState.FAILED, error=describe(error))
    events = tuple(attempt.context.emitted)
    return _completion(attempt, JobState.SUCCEEDED, result=result, port=done.port, events=events)


def _failed(attempt: Attempt, ending: Failed) -> Completion:
    if attempt.stop_reason is StopReason.RELEASED:
        return _released(attempt)
    if ending.retry_in is None or attempt.stop_reason is StopReason.CANCELLED:
        state = JobState.CANCELLED if attempt.stop_reason is StopReason.CANCELLED else JobState.FAILED
        return _completion(attempt, state, error=ending.error, charged=ending.charged and not ending.lone_crash)
    return _completion(
        attempt,
        JobState.SCHEDULED,
        error=ending.error,
        delay=ending.retry_in,
        charged=ending.charged and not ending.lone_crash,
        lone_crash=ending.lone_crash,
        progressed=ending.progressed or attempt.progressed,
    )


def _completion(attempt: Attempt, state: JobState, **facts: Any) -> Completion:
    job = attempt.job
    return Completion(
        job.id, job.attempt, state, usage=attempt.usage, batch_id=job.batch_id, works=attempt.works,
        limited=attempt.limited, log=attempt.context.kept_log, **facts,
    )  # fmt: skip


def _with_log(attempt: Attempt, completion: Completion) -> Completion:
    """Return a completion with what was kept here, unless it brought a log from where its handler ran."""
    kept = attempt.context.kept_log
    return completion if kept is None or completion.log is not None else replace(completion, log=kept)


def describe(error: BaseException, *, with_trace: bool = False) -> JobError:
    """Return an error as it is kept with a job: class, message, and the trace of surprises."""
    kind = error.code if isinstance(error, HeadraceError) else type(error).__name__
    trace = "".join(traceback.format_exception(error))[-_MAX_TRACE:] if with_trace else ""
    return JobError(kind, storable(_text(error))[:_MAX_MESSAGE], storable(trace))


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "an error whose message cannot be read"


def asked(kind: str, field: str, reason: Any) -> JobError:
    """Return the error record of a handler that ended with `Retry`, `Fail` or `Cancel`; checks the reason."""
    if not isinstance(reason, str):
        raise InvalidInputError(field, "must be text", reason)
    return JobError(kind, storable(reason)[:_MAX_MESSAGE])
