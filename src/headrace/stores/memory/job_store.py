"""Jobs in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import timedelta
from heapq import heappop
from uuid import UUID

from headrace.model.errors import FenceLostError
from headrace.model.farm import RESERVED
from headrace.model.job import Claim, ClaimedJob, Completion, JobState, NewJob
from headrace.model.session import LeaderTerm
from headrace.model.stats import Pruned, Rescued, Retention
from headrace.ports.notifier import Notifier
from headrace.stores.memory import claims, endings, intake
from headrace.stores.memory.leadership import leads
from headrace.stores.memory.outbox_rows import EVENTS
from headrace.stores.memory.retention import prune_jobs
from headrace.stores.memory.state import TIMED, State, atomic


class MemoryJobStore:
    """`ports.job_store.JobStore` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State, notifier: Notifier) -> None:
        self._state, self._notifier = state, notifier

    @atomic
    async def insert_jobs(self, jobs: Sequence[NewJob], *, retrying: bool = False) -> list[UUID]:
        """Insert jobs. Ids that are stored are always left alone here, `retrying` or not."""
        ids = intake.insert_jobs(self._state, jobs)
        for queue in {job.spec.queue for job in jobs}:
            self._notifier.hint(f"queue:{queue}")
        return ids

    @atomic
    async def claim_jobs(self, claim: Claim) -> list[ClaimedJob]:
        """Start ready jobs under a live session."""
        return await claims.claim_jobs(self._state, claim)

    @atomic
    async def claimed_jobs(self, session: UUID, *, queue: str) -> list[ClaimedJob]:
        """Return what a session runs in a queue."""
        return claims.claimed_jobs(self._state, session, queue)

    @atomic
    async def complete_jobs(self, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
        """Apply the completions whose fence holds."""
        return self._complete(session, completions)

    @atomic
    async def exchange_jobs(
        self, session: UUID, completions: Sequence[Completion], claim: Claim
    ) -> tuple[list[UUID], list[ClaimedJob]]:
        """Complete and claim in one step."""
        accepted = self._complete(session, completions)
        return accepted, await claims.claim_jobs(self._state, claim)

    def _complete(self, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
        applied = endings.complete_jobs(self._state, session, completions)
        if any(completion.events for completion in completions):
            self._notifier.hint(EVENTS)
        return applied

    @atomic
    async def stage_jobs(self, *, limit: int) -> frozenset[str]:
        """Make jobs ready whose time has come, at the place of that time, however late this sweep comes."""
        state, queues, staged = self._state, set(), 0
        while state.scheduled and state.scheduled[0][0] <= state.now() and staged < limit:
            due_at, job_id = heappop(state.scheduled)
            job = state.jobs.get(job_id)
            if job is not None and job.state in TIMED and job.run_at == due_at:
                state.queue_up(job, due_at)
                if job.state is JobState.READY:
                    queues.add(job.spec.queue)
                staged += 1
        return frozenset(queues)

    @atomic
    async def rescue_jobs(self, *, limit: int) -> Rescued:
        """Take back the jobs of dead sessions."""
        return endings.rescue_jobs(self._state, limit=limit)

    @atomic
    async def fail_overdue_jobs(self, *, grace: timedelta, limit: int, term: LeaderTerm) -> Rescued:
        """End attempts far beyond their timeout; nothing under a term that is over."""
        if not leads(self._state, term):
            return Rescued()
        return endings.fail_overdue_jobs(self._state, grace=grace, limit=limit)

    @atomic
    async def save_step(self, job_id: UUID, *, attempt: int, session: UUID, name: str, value: str) -> str:
        """Store a step once, under the fence."""
        if endings.owned_job(self._state, job_id, attempt, session) is None:
            raise FenceLostError
        steps = self._state.steps.setdefault(job_id, {})
        if name.startswith(RESERVED) and name in steps and json.loads(steps[name])["attempt"] != attempt:
            steps[name] = value
        return steps.setdefault(name, value)

    @atomic
    async def load_steps(self, job_id: UUID) -> dict[str, str]:
        """Return the stored steps of a job."""
        return dict(self._state.steps.get(job_id, {}))

    @atomic
    async def running_job(self, job_id: UUID, *, attempt: int, session: UUID) -> ClaimedJob | None:
        """Return the job that runs under a fence."""
        job = endings.owned_job(self._state, job_id, attempt, session)
        return None if job is None else claims.as_claimed(job)

    @atomic
    async def read_steps(self, wanted: Sequence[tuple[UUID, str]]) -> dict[tuple[UUID, str], str]:
        """Return steps of several jobs."""
        steps = self._state.steps
        return {(job, name): steps[job][name] for job, name in wanted if name in steps.get(job, {})}

    @atomic
    async def prune_jobs(
        self, retention: Retention, *, limit: int, queue: str | None = None, term: LeaderTerm | None = None
    ) -> Pruned:
        """Remove what is older than its retention; nothing under a term that is over."""
        if term is not None and not leads(self._state, term):
            return Pruned()
        return prune_jobs(self._state, retention, limit=limit, queue=queue)
