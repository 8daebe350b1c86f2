"""Invariants of jobs: conservation, final rows, attempts, fences, claims and keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.model.batch import BatchState
from headrace.model.errors import ConflictError, FenceLostError
from headrace.model.job import ClaimedJob, Completion, JobState, NewJob
from headrace.stores.memory.rows import Finished, Job
from headrace.testing.simulation.faults import Request
from headrace.testing.simulation.referee import Referee

#: What may take a job from running with its worker's word, what may claim one, and what does without its word.
COMPLETING = ("complete_jobs", "exchange_jobs")
CLAIMING = ("claim_jobs", "exchange_jobs", "admit_jobs")
SWEEPS = ("rescue_jobs", "fail_overdue_jobs")


@dataclass(slots=True)
class Seen:
    """A job as it was left by the last call that moved it."""

    state: JobState
    attempt: int
    session: UUID | None
    run_at: datetime | None
    final: tuple[Any, ...] | None = None


class JobRules:
    """Keeps its own account of every job and compares."""

    def __init__(self, referee: Referee) -> None:
        self._referee, self._state = referee, referee.state
        self.seen: dict[UUID, Seen] = {}
        self._keys: dict[tuple[str, str], tuple[UUID, str]] = {}
        self._steps: dict[tuple[UUID, str], str] = {}
        self._owned: list[UUID] = []
        #: Times that parked jobs no longer wait for, since a signal woke them.
        self._woken: dict[UUID, datetime | None] = {}
        self._pruned = 0

    def before(self, request: Request) -> None:
        """Note which fences of a call hold."""
        if request.verb in COMPLETING:
            session, completions = request.args[:2]
            self._owned = self._owned_by(session, completions)
        elif request.verb == "save_step":
            fence = request.kwargs
            self._owned = [request.args[0]] * self._holds(request.args[0], fence["attempt"], fence["session"])

    def _owned_by(self, session: UUID, completions: list[Completion]) -> list[UUID]:
        held = [done.job_id for done in completions if self._holds(done.job_id, done.attempt, session)]
        return list(dict.fromkeys(held))

    def _holds(self, job_id: UUID, attempt: int, session: UUID) -> bool:
        seen = self.seen.get(job_id)
        return seen is not None and (seen.state, seen.attempt, seen.session) == (JobState.RUNNING, attempt, session)

    def after(self, request: Request, moved: list[UUID], result: Any, error: BaseException | None) -> None:
        """Check the jobs that a call moved, and what it says of itself."""
        self._check_answer(request, moved, result, error)
        for job_id in moved:
            self._look(job_id, request)
        if len(self._state.jobs) + len(self._state.finished) + self._pruned != len(self.seen):
            self._breach("conservation", f"{request.verb}: jobs appeared or vanished")

    def _check_answer(self, request: Request, moved: list[UUID], result: Any, error: BaseException | None) -> None:
        match request.verb:
            case "complete_jobs":
                self._check_completed(moved, result)
            case "exchange_jobs":
                self._check_exchanged(moved, *result)
            case "save_step":
                self._check_step(request, result, error)
            case "insert_jobs":
                self._check_inserted(request, moved, result, error)
            case "prune_jobs":
                self._forget_pruned()

    def _breach(self, invariant: str, what: str) -> None:
        self._referee.breach(invariant, what)

    def _look(self, job_id: UUID, request: Request) -> None:
        live, finished = self._state.jobs.get(job_id), self._state.finished.get(job_id)
        if (live is None) == (finished is None):
            self._breach("conservation", f"job {job_id} is {'nowhere' if live is None else 'both live and final'}")
            return
        job = live if live is not None else finished.job  # type: ignore[union-attr]
        row: Job | Finished = job if finished is None else finished
        final = _fingerprint(finished) if finished is not None else None
        now = Seen(row.state, job.attempt, job.session, job.run_at, final)
        before = self.seen.get(job_id)
        self.seen[job_id] = now
        if before is None:
            before = Seen(JobState.READY, 0, None, job.run_at)
            if now.attempt or now.state.final:
                self._breach("conservation", f"job {job_id} was inserted by {request.verb} as {now}")
        self._compare(job, before, now, request)

    def _compare(self, job: Job, before: Seen, now: Seen, request: Request) -> None:
        if before.final is not None:
            self._breach("final rows never change", f"{request.verb} moved job {job.id}, which was {before.state}")
        elif now.attempt < before.attempt:
            self._breach("attempt never falls", f"job {job.id}: from {before.attempt} to {now.attempt}")
        elif now.attempt > before.attempt:
            self._check_claim(job, before, now, request)
        else:
            self._check_attempt(job, before, now, request)

    def _check_attempt(self, job: Job, before: Seen, now: Seen, request: Request) -> None:
        if before.state is JobState.RUNNING:
            self._check_end(job, before, now, request)
        elif before.state is JobState.PARKED and request.verb != "stage_jobs":
            self._woken[job.id] = before.run_at

    def _check_claim(self, job: Job, before: Seen, now: Seen, request: Request) -> None:
        if request.verb not in CLAIMING or now.state is not JobState.RUNNING or now.attempt != before.attempt + 1:
            self._breach("attempt counts claims", f"{request.verb} made job {job.id} {now}")
        elif before.state is not JobState.READY and not (request.verb == "exchange_jobs" and job.id in self._owned):
            self._breach("one running attempt", f"job {job.id} was claimed while it was {before.state}")
        else:
            self._check_right(job, before, now)

    def _check_right(self, job: Job, before: Seen, now: Seen) -> None:
        state, at = self._state, self._state.now()
        if before.run_at is not None and before.run_at > at and before.run_at != self._woken.get(job.id):
            self._breach("no claim before run_at", f"job {job.id} was claimed at {at}, its time is {before.run_at}")
        elif now.session is None or not state.alive(now.session):
            self._breach("session expiry", f"job {job.id} was claimed for {now.session}, whose lease has ended")
        elif job.cancel_requested:
            self._breach("cancelled jobs start no more", f"job {job.id} was claimed though its cancel was acknowledged")
        else:
            self._check_gates(job)

    def _check_gates(self, job: Job) -> None:
        queue = self._state.queues.get(job.spec.queue)
        if queue is not None and queue.paused:
            self._breach("paused queues start nothing", f"job {job.id} of {job.spec.queue} was claimed")
        if job.batch_id is not None and self._state.batches[job.batch_id].state is BatchState.CANCELLING:
            self._breach("cancelled jobs start no more", f"job {job.id} of a batch being cancelled was claimed")

    def _check_end(self, job: Job, before: Seen, now: Seen, request: Request) -> None:
        if request.verb in COMPLETING:
            fair = job.id in self._owned
        elif request.verb == "rescue_jobs":
            fair = not self._state.alive(before.session)
        else:
            fair = request.verb in SWEEPS
        if not fair:
            self._breach("fence", f"{request.verb} of {request.actor} took job {job.id} from a running attempt: {now}")

    def _check_completed(self, moved: list[UUID], result: list[UUID]) -> None:
        if result != self._owned or set(moved) - set(self._owned):
            what = f"complete_jobs accepted {result} and moved {moved}; the fence held for {self._owned}"
            self._breach("a stale fence changes nothing", what)

    def _check_exchanged(self, moved: list[UUID], accepted: list[UUID], claimed: list[ClaimedJob]) -> None:
        taken = {job.id for job in claimed} - set(self._owned)
        self._check_completed([job_id for job_id in moved if job_id not in taken], accepted)

    def _check_step(self, request: Request, result: Any, error: BaseException | None) -> None:
        place = (request.args[0], request.kwargs["name"])
        if isinstance(error, FenceLostError) == bool(self._owned):
            self._breach("a stale fence changes nothing", f"save_step {place} gave {error or result}")
        elif error is None and self._steps.setdefault(place, result) != result:
            self._breach("steps are written once", f"{place} was {self._steps[place]} and is {result}")

    def _check_inserted(self, request: Request, moved: list[UUID], result: Any, error: BaseException | None) -> None:
        jobs = request.args[0]
        if error is not None:
            if moved:
                self._breach("refused inserts change nothing", f"{error} after {moved} were inserted")
            if isinstance(error, ConflictError) and not self._conflict(jobs):
                self._breach("same key, same id", "a key was refused though no other body used it")
            return
        for job, stored in zip(jobs, result, strict=True):
            if stored not in self._state.jobs and stored not in self._state.finished and not self._pruned:
                self._breach("accepted means stored", f"job {stored} was accepted and is nowhere")
            if job.key is None and stored != job.id:
                self._breach("accepted means stored", f"job {job.id} got the id {stored}")
            if job.key is not None and self._known(job, insert=True) != (stored, job.body_hash):
                self._breach("same key, same id", f"key {job.key} was given {stored} after {self._known(job)}")

    def _conflict(self, jobs: list[NewJob]) -> bool:
        """Whether a key of these jobs stands for another body, stored before or among themselves."""
        bodies: dict[tuple[str, str], str] = {}
        for job in jobs:
            if job.key is not None:
                place = (job.spec.task, job.key)
                if bodies.setdefault(place, self._known(job)[1]) != job.body_hash:
                    return True
        return False

    def _known(self, job: NewJob, *, insert: bool = False) -> tuple[UUID, str]:
        known = (job.id, job.body_hash)
        place = (job.spec.task, job.key or "")
        return self._keys.setdefault(place, known) if insert else self._keys.get(place, known)

    def _forget_pruned(self) -> None:
        for job_id, seen in self.seen.items():
            gone = seen.final is not None and job_id not in self._state.finished
            if gone and seen.final != _PRUNED:
                seen.final = _PRUNED
                self._pruned += 1

    def thorough(self) -> None:
        """Compare every row with the account."""
        for job_id, job in self._state.jobs.items():
            seen = self.seen[job_id]
            if (seen.state, seen.attempt, seen.session) != (job.state, job.attempt, job.session):
                self._breach("conservation", f"job {job_id} changed on the quiet from {seen} to {job}")
            if (job.state is JobState.RUNNING) != (job_id in self._state.running):
                self._breach("slots used = running rows", f"job {job_id} is {job.state}, the index says otherwise")
        for job_id, row in self._state.finished.items():
            if self.seen[job_id].final != _fingerprint(row):
                self._breach("final rows never change", f"job {job_id} is now {row}")


_PRUNED = ("pruned",)


def _fingerprint(row: Finished) -> tuple[Any, ...]:
    job = row.job
    return (
        row.state, row.result, row.error, row.finished_at, job.attempt, job.failures, job.crashes, job.session,
    )  # fmt: skip
