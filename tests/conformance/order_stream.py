"""Jobs of several classes that come, are started and leave, and what the formula of the order says of them."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from headrace.model.job import JobState, NewJob
from headrace.model.priority import head_start
from tests.conformance.scenario import ARGS, SPEC, Scenario


class Stream:
    """Jobs by their class and ready time, in the order they were started."""

    def __init__(self, on: Scenario, session: UUID) -> None:
        self.on, self.session = on, session
        self.ready_at: dict[UUID, datetime] = {}
        self.priority: dict[UUID, int] = {}
        self.started: list[UUID] = []
        self.started_at: dict[UUID, datetime] = {}

    async def enqueue(self, priority: int, count: int = 1) -> list[UUID]:
        """Enqueue jobs of a class that are ready now."""
        ids = await self.on.enqueue(count, priority=priority)
        for job_id in ids:
            self.ready_at[job_id], self.priority[job_id] = self.on.clock.now(), priority
        return ids

    async def enqueue_for(self, priority: int, ready_at: datetime) -> UUID:
        """Enqueue a job of a class that becomes ready later."""
        job = NewJob(replace(SPEC, priority=priority), ARGS, run_at=ready_at)
        [job_id] = await self.on.stores.jobs.insert_jobs([job])
        self.ready_at[job_id], self.priority[job_id] = ready_at, priority
        return job_id

    async def work(self, count: int) -> None:
        """Start and end as many jobs as a worker has slots."""
        await self.on.stores.jobs.stage_jobs(limit=1_000)
        jobs = await self.on.claim(self.session, count)
        for job in jobs:
            self.started.append(job.id)
            self.started_at[job.id] = self.on.clock.now()
        await self.on.end(self.session, *jobs, state=JobState.SUCCEEDED)

    def key(self, job_id: UUID) -> tuple[datetime, UUID]:
        """The formula."""
        return self.ready_at[job_id] - head_start(self.priority[job_id]), job_id

    def overtook(self, job_id: UUID) -> set[UUID]:
        """Return the jobs that became ready after a job and were started before it."""
        before = self.started[: self.started.index(job_id)]
        return {other for other in before if self.ready_at[other] > self.ready_at[job_id]}

    def check_overtaking(self) -> None:
        """See that each overtaking is allowed by the head starts."""
        for place, late in enumerate(self.started):
            for early in self.started[:place]:
                gap = self.ready_at[early] - self.ready_at[late]
                if gap > timedelta():
                    assert gap <= head_start(self.priority[early]) - head_start(self.priority[late])
