"""What conformance tests do again and again: start workers, enqueue, claim, finish, look."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from headrace.model.admission import Admitted
from headrace.model.batch import BatchItem, BatchView, NewBatch, Slice
from headrace.model.job import Claim, ClaimedJob, Completion, JobSpec, JobState, JobView, NewJob
from headrace.model.payload import hash_text
from headrace.model.session import LeaderTerm, NewSession, ProcessId
from headrace.ports.admission import Admission
from headrace.ports.limiter import Limiter
from headrace.ports.stores import Stores
from headrace.testing.clock import FakeClock

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
LEASE = timedelta(seconds=12)
ARGS = '{"args":[],"kwargs":{}}'
SPEC = JobSpec("work")
#: More than any test has.
ALL = 10_000


def item(number: int) -> str:
    """Return the argument text of an item."""
    return f'{{"args":[{number}],"kwargs":{{}}}}'


def items(count: int, first: int = 0) -> list[str]:
    """Return the argument texts of consecutive items."""
    return [item(number) for number in range(first, first + count)]


def part(batch_id: UUID, first: int, count: int, *, text: str | None = None) -> Slice:
    """Return a slice of a streamed batch whose hash follows its contents."""
    args = tuple(items(count, first)) if text is None else (text,) * count
    return Slice(batch_id, first, args, hash_text(*args))


class Scenario:
    """Stores with their clock, and short words for the usual acts."""

    def __init__(self, stores: Stores, clock: FakeClock) -> None:
        self.stores = stores
        self.clock = clock

    async def worker(
        self, *, lease: timedelta = LEASE, host: str = "host", queues: dict[str, int] | None = None, pid: int = 1
    ) -> UUID:
        """Register a session and return its id."""
        session = NewSession(ProcessId(host, pid, 1), f"{host}.example", queues or {"default": 10}, lease)
        await self.stores.sessions.register_session(session)
        return session.id

    async def enqueue(self, count: int = 1, **spec: Any) -> list[UUID]:
        """Insert jobs of one specification and return their ids in claim order."""
        shared = replace(SPEC, **spec)
        ids = await self.stores.jobs.insert_jobs([NewJob(shared, ARGS) for _ in range(count)])
        return sorted(ids)

    async def claim(self, session: UUID, limit: int = ALL, *, queue: str = "default") -> list[ClaimedJob]:
        """Claim jobs of a queue without a gate."""
        return await self.stores.jobs.claim_jobs(Claim(session, queue, limit))

    async def start(self, session: UUID | None = None, **spec: Any) -> tuple[UUID, ClaimedJob]:
        """Enqueue one job, claim it, and return the session and the job."""
        session = session or await self.worker()
        [job_id] = await self.enqueue(**spec)
        [job] = [job for job in await self.claim(session, queue=spec.get("queue", "default")) if job.id == job_id]
        return session, job

    async def end(
        self, session: UUID, *jobs: ClaimedJob, state: JobState = JobState.SUCCEEDED, **facts: Any
    ) -> list[UUID]:
        """Complete claimed jobs alike and return the ids whose fence held."""
        done = [Completion(job.id, job.attempt, state, batch_id=job.batch_id, **facts) for job in jobs]
        return await self.stores.jobs.complete_jobs(session, done)

    async def job(self, job_id: UUID) -> JobView:
        """Return a job that must exist."""
        view = await self.stores.inspect.get_job(job_id)
        assert view is not None
        return view

    async def states(self, job_ids: Sequence[UUID]) -> list[JobState]:
        """Return the state of each job."""
        return [(await self.job(job_id)).state for job_id in job_ids]

    async def batch(self, count: int, **facts: Any) -> UUID:
        """Create a sealed batch of `count` items and return its id."""
        new = NewBatch(facts.pop("spec", SPEC), **facts)
        return await self.stores.batches.create_batch(new, items(count))

    async def open_batch(self, **facts: Any) -> UUID:
        """Create a batch to be streamed and return its id."""
        return await self.stores.batches.create_batch(NewBatch(SPEC, **facts), None)

    async def view(self, batch_id: UUID) -> BatchView:
        """Return a batch that must exist."""
        view = await self.stores.inspect.get_batch(batch_id)
        assert view is not None
        return view

    async def work_off(self, session: UUID, outcomes: Sequence[JobState]) -> list[ClaimedJob]:
        """Claim one job per outcome, in claim order, and end each with its outcome."""
        jobs = await self.claim(session, len(outcomes))
        pairs = zip(jobs, outcomes, strict=True)
        done = [Completion(job.id, job.attempt, state, batch_id=job.batch_id) for job, state in pairs]
        assert len(await self.stores.jobs.complete_jobs(session, done)) == len(outcomes)
        return jobs

    async def read_all(self, batch_id: UUID, *, page: int = ALL) -> list[BatchItem]:
        """Read a batch's finished items from the start, page by page."""
        found: list[BatchItem] = []
        cursor = ""
        while True:
            read = await self.stores.inspect.read_items(batch_id, cursor=cursor, limit=page)
            if not read.items:
                return found
            found += read.items
            cursor = read.cursor

    async def term(self, lease: timedelta = timedelta(hours=30)) -> LeaderTerm:
        """Become the leader under a fresh session."""
        term = await self.stores.sessions.lead(uuid4(), lease=lease)
        assert term is not None
        return term

    @property
    def gate(self) -> Admission:
        """Return the gate of the backend."""
        return self.stores.admission

    @property
    def limiter(self) -> Limiter:
        """Return the limiter of the backend."""
        return self.stores.limiter

    async def look(
        self, session: UUID, limit: int = ALL, *, queue: str = "default", grants: Mapping[str, float] | None = None
    ) -> Admitted:
        """Admit jobs of a queue and return the whole answer."""
        return await self.gate.admit_jobs(Claim(session, queue, limit), grants=grants)

    async def admit(self, session: UUID, limit: int = ALL, *, queue: str = "default") -> list[ClaimedJob]:
        """Admit jobs of a queue and return them."""
        return (await self.look(session, limit, queue=queue)).jobs

    async def running(self, queue: str | None = None) -> list[UUID]:
        """Return the ids of what runs, sorted."""
        views = await self.stores.inspect.list_jobs(state=JobState.RUNNING, queue=queue, limit=ALL)
        return sorted(view.id for view in views)
