"""Handlers as they really run, beside what the store believes: who runs which attempt, and how each one ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from uuid import UUID

from headrace.engine.context import Context
from headrace.model.job import JobState
from headrace.testing.simulation.faults import Request
from headrace.testing.simulation.loop import Actor
from headrace.testing.simulation.referee import Referee

#: A process that was frozen or cut off needs a moment to see that its lease is over.
RECOVERY_SECONDS = 0.5


@dataclass(frozen=True, slots=True)
class Execution:
    """A handler that runs, in which process and for which session."""

    job_id: UUID
    attempt: int
    session: UUID | None
    actor: Actor


class Executions:
    """Checks that no two handlers of a job run under valid leases, and that a worker stops its own in time."""

    def __init__(self, referee: Referee) -> None:
        self._referee, self._state = referee, referee.state
        self._running: dict[UUID, list[Execution]] = {}
        self._returned: set[tuple[UUID, int]] = set()
        self._started_once: dict[UUID, int] = {}

    @contextmanager
    def running(self, ctx: Context) -> Iterator[None]:
        """Note a handler for as long as it runs."""
        steps = ctx.steps
        execution = Execution(ctx.job_id, ctx.attempt, steps.session, self._referee.loop.actor)  # type: ignore[attr-defined]
        self._begin(execution, ctx)
        try:
            yield
            self._returned.add((ctx.job_id, ctx.attempt))
        finally:
            self._running[ctx.job_id].remove(execution)
            self._referee.note(execution.actor, "leaves", ctx.job_id, "attempt", ctx.attempt)

    def _begin(self, execution: Execution, ctx: Context) -> None:
        self._referee.note(execution.actor, "enters", ctx.job_id, "attempt", ctx.attempt, ctx.task)
        others = self._running.setdefault(ctx.job_id, [])
        for other in others:
            both = self._state.alive(other.session) and self._state.alive(execution.session)
            if both and not other.actor.dead:
                what = f"job {ctx.job_id} runs as {other} and {execution}, and both leases are valid"
                self._referee.breach("one running attempt", what)
        others.append(execution)
        if ctx.task == "once" and self._started_once.setdefault(ctx.job_id, ctx.attempt) != ctx.attempt:
            self._referee.breach("at most once", f"job {ctx.job_id} ran before and runs again")

    def before(self, request: Request) -> None:
        """Nothing to prepare."""

    def after(self, request: Request, moved: list[UUID], result: object, error: BaseException | None) -> None:
        """Check what the calls that end attempts say against what the handlers did."""
        if request.verb in ("complete_jobs", "exchange_jobs"):
            self._check_successes(moved)

    def _check_successes(self, moved: list[UUID]) -> None:
        for job_id in moved:
            row = self._state.finished.get(job_id)
            if row is None or row.state is not JobState.SUCCEEDED:
                continue
            if (job_id, row.job.attempt) not in self._returned:
                self._referee.breach("results come from handlers", f"job {job_id} succeeded, no handler returned that")

    def check_leases(self) -> None:
        """A worker that can run has stopped its handlers when its lease ends."""
        now = self._referee.loop.now
        for runs in self._running.values():
            for execution in runs:
                actor = execution.actor
                free = actor.present and now - actor.disturbed_at > RECOVERY_SECONDS
                if free and not self._state.alive(execution.session):
                    self._referee.breach("handlers stop before their lease ends", f"{execution} runs on")

    def thorough(self) -> None:
        """Nothing beyond each call."""

    @property
    def any(self) -> bool:
        """Whether a handler runs in a process that lives."""
        return any(not run.actor.dead for runs in self._running.values() for run in runs)


EXECUTIONS: ContextVar[Executions] = ContextVar("headrace-simulated-executions")
