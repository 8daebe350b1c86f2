"""How attempts end: by their worker's completion, by rescue from a dead session, or by the overdue sweep.

Each leaves the job either final or waiting again, never both, and only under the fence it names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice
from uuid import UUID

from headrace.model.crashes import EXECUTOR_LOST, MAX_LONE_CRASHES, OVERDUE, POISON, WORKER_LOST
from headrace.model.farm import BEGUN, of_attempt
from headrace.model.job import Completion, JobError, JobState
from headrace.model.stats import Rescued
from headrace.stores.memory.effects import apply_effects
from headrace.stores.memory.rows import Job
from headrace.stores.memory.state import State


def complete_jobs(state: State, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
    """Apply the completions whose fence holds and return their job ids."""
    applied: list[UUID] = []
    for completion in completions:
        job = owned_job(state, completion.job_id, completion.attempt, session)
        if job is not None:
            _complete(state, job, completion)
            if completion.state.final and completion.effects is not None:
                state.runs.settle(job.id)
                apply_effects(state, completion.effects)
            if completion.state is JobState.SUCCEEDED:
                state.outbox.insert(completion.events, state.now())
            applied.append(job.id)
    return applied


def owned_job(state: State, job_id: UUID, attempt: int, session: UUID) -> Job | None:
    """Return the job that runs under this fence, or None."""
    job = state.running.get(job_id)
    return job if job is not None and (job.attempt, job.session) == (attempt, session) else None


def _complete(state: State, job: Job, done: Completion) -> None:
    if done.progressed:
        job.lone_crashes = 0
    job.failures += done.charged
    job.crashes += done.lone_crash
    job.lone_crashes += done.lone_crash
    if done.log is not None:
        state.keep_log(job, done.log, goes_back=not done.state.final)
    if done.state.final:
        state.finish(job, done.state, result=done.result, error=done.error, usage=done.usage)
    elif job.cancel_requested:
        state.finish(job, JobState.CANCELLED, error=done.error, usage=done.usage)
    elif job.lone_crashes >= MAX_LONE_CRASHES:
        state.finish(job, JobState.FAILED, error=POISON, usage=done.usage)
    else:
        if done.charged or done.lone_crash or done.error is not None:
            outcome = "crashed" if done.lone_crash else "failed" if done.charged else "lost"
            state.record_attempt(job, outcome, done.error)
        _go_back(state, job, done)


def _go_back(state: State, job: Job, done: Completion) -> None:
    if done.park is not None:
        state.park(job, done.park)
    elif done.released:
        assert job.sort_at is not None
        state.make_ready(job, sort_at=job.sort_at)
    else:
        state.wait(job, until=state.now() + done.delay)


@dataclass(slots=True)
class Sweep:
    """Collects what a sweep did."""

    released: list[UUID] = field(default_factory=list)
    failed: list[UUID] = field(default_factory=list)
    queues: set[str] = field(default_factory=set)
    batches: set[UUID] = field(default_factory=set)

    def release(self, state: State, job: Job, outcome: str, error: JobError) -> None:
        """Send a job back to the place it had."""
        assert job.sort_at is not None
        state.record_attempt(job, outcome, error)
        state.make_ready(job, sort_at=job.sort_at)
        self.released.append(job.id)
        self.queues.add(job.spec.queue)

    def end(self, state: State, job: Job, final: JobState, error: JobError) -> None:
        """End a job for good."""
        state.finish(job, final, error=error)
        if final is JobState.FAILED:
            self.failed.append(job.id)
        if job.batch_id is not None:
            self.batches.add(job.batch_id)

    def answer(self) -> Rescued:
        """Return what was done."""
        return Rescued(tuple(self.released), tuple(self.failed), frozenset(self.queues), frozenset(self.batches))


def rescue_jobs(state: State, *, limit: int) -> Rescued:
    """Take back running jobs whose session is missing or has expired; no crash of those that a farm had begun."""
    sweep = Sweep()
    for job in _running(state, lambda job: not state.alive(job.session), limit):
        begun = of_attempt(state.steps.get(job.id, {}).get(BEGUN), job.attempt) is not None
        error = EXECUTOR_LOST if begun else WORKER_LOST
        job.crashes += not begun
        if job.cancel_requested:
            sweep.end(state, job, JobState.CANCELLED, error)
        elif job.spec.at_most_once:
            sweep.end(state, job, JobState.FAILED, error)
        else:
            sweep.release(state, job, "lost" if begun else "crashed", error)
    return sweep.answer()


def fail_overdue_jobs(state: State, *, grace: timedelta, limit: int) -> Rescued:
    """End attempts that ran longer than their timeout plus `grace`."""
    sweep = Sweep()
    for job in _running(state, lambda job: _overdue(state, job, grace), limit):
        job.failures += 1
        if job.cancel_requested:
            sweep.end(state, job, JobState.CANCELLED, OVERDUE)
        elif job.spec.at_most_once or job.failures >= job.spec.max_attempts:
            sweep.end(state, job, JobState.FAILED, OVERDUE)
        else:
            sweep.release(state, job, "failed", OVERDUE)
    return sweep.answer()


def _overdue(state: State, job: Job, grace: timedelta) -> bool:
    assert job.started_at is not None
    return job.spec.timeout is not None and job.started_at + job.spec.timeout + grace < state.now()


def _running(state: State, concerned: Callable[[Job], bool], limit: int) -> Iterable[Job]:
    return list(islice(filter(concerned, state.running.values()), limit))
