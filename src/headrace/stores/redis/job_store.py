"""The job store port on Redis: intake, claim, completion, and the sweeps that keep jobs moving. One script per verb."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.errors import FenceLostError
from headrace.model.job import Claim, ClaimedJob, Completion, NewJob
from headrace.model.session import LeaderTerm
from headrace.model.stats import Pruned, Rescued, Retention
from headrace.stores.redis import intake, pruning
from headrace.stores.redis.endings import completion_parts, encode_completions
from headrace.stores.redis.namespace import Namespace
from headrace.stores.redis.notifier import RedisNotifier
from headrace.stores.redis.rows import admitted_jobs, claim_words, claimed_jobs, leader_words, rescued, span

#: Jobs that one script of a sweep moves at most: more would hold up everybody else.
SWEEP_PART = 100
#: Steps that one script reads at most.
READ_PART = 500
#: What a claim answers that found nothing but jobs of batches being cancelled, and perhaps not all of them.
_MORE = 1


class RedisJobStore:
    """Durable jobs, as durable as the server's append-only file."""

    def __init__(self, namespace: Namespace, notifier: RedisNotifier) -> None:
        self._namespace, self._notifier = namespace, notifier

    async def insert_jobs(self, jobs: Sequence[NewJob], *, retrying: bool = False) -> list[UUID]:
        """Insert `jobs`, hint their queues, and return the ids; ids that are stored are always left alone here."""
        if not jobs:
            return []
        first, *others = sorted({f"queue:{job.spec.queue}" for job in jobs})
        # The script tells other processes of the first queue by itself: that spares them a round trip of ours.
        ride = self._notifier.ride(first)
        if ride is None:
            ids, others = await intake.insert_jobs(self._namespace, jobs), [first, *others]
        else:
            ids = await intake.insert_jobs(self._namespace, jobs, channel=ride.channel, hint=ride.payload)
            self._notifier.hint_here(first)
        for topic in others:
            self._notifier.hint(topic)
        return ids

    async def claim_jobs(self, claim: Claim) -> list[ClaimedJob]:
        """Move up to `claim.limit` ready jobs to running under the session and return them in claim order."""
        rows: Any = _MORE
        while rows == _MORE:
            rows = await self._namespace.run("claim_jobs", claim.session.hex, *claim_words(claim))
        return claimed_jobs(rows, claim.queue)

    async def claimed_jobs(self, session: UUID, *, queue: str) -> list[ClaimedJob]:
        """Return the running jobs that a session holds in a queue, in claim order."""
        gated, rows = await self._namespace.run("claimed_jobs", session.hex, queue)
        jobs = admitted_jobs(rows, queue) if gated else claimed_jobs(rows, queue)
        return sorted(jobs, key=lambda job: (job.sort_at, job.id))

    async def complete_jobs(self, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
        """Apply the completions whose fence holds and return their job ids."""
        accepted: list[UUID] = []
        for part in completion_parts(completions):
            refused = await self._namespace.run("complete_jobs", session.hex, encode_completions(part))
            accepted += _accepted(part, refused)
        return accepted

    async def exchange_jobs(
        self, session: UUID, completions: Sequence[Completion], claim: Claim
    ) -> tuple[list[UUID], list[ClaimedJob]]:
        """Complete and claim in one script; a claim always goes along. Of many completions the first go before."""
        *before, last = completion_parts(completions) or [completions]
        accepted = [job for part in before for job in await self.complete_jobs(session, part)]
        refused, rows = await self._namespace.run(
            "exchange_jobs", session.hex, encode_completions(last), *claim_words(claim)
        )
        accepted += _accepted(last, refused)
        return accepted, await self.claim_jobs(claim) if rows == _MORE else claimed_jobs(rows, claim.queue)

    async def stage_jobs(self, *, limit: int) -> frozenset[str]:
        """Move scheduled jobs that are due, and parked ones whose time has come; return the queues that gained one."""
        queues: set[str] = set()
        async for found in self._sweep("stage_jobs", limit=limit):
            queues |= set(found)
        return frozenset(queues)

    async def rescue_jobs(self, *, limit: int) -> Rescued:
        """Take back running jobs of sessions that are missing or expired."""
        return rescued([row async for rows in self._sweep("rescue_jobs", limit=limit) for row in rows])

    async def fail_overdue_jobs(self, *, grace: timedelta, limit: int, term: LeaderTerm) -> Rescued:
        """End attempts that ran longer than their timeout plus `grace`: retried while failures allow, else failed."""
        words = (span(grace), *leader_words(term))
        return rescued([row async for rows in self._sweep("fail_overdue_jobs", *words, limit=limit) for row in rows])

    async def _sweep(self, verb: str, *words: str | int, limit: int) -> AsyncIterator[list[Any]]:
        """Run a sweep part by part, up to a limit, and yield what each part says of the jobs that it moved."""
        moved = 0
        while moved < limit:
            part = min(SWEEP_PART, limit - moved)
            count, found = await self._namespace.run(verb, part, *words)
            yield found
            moved += count
            if count < part:
                break

    async def save_step(self, job_id: UUID, *, attempt: int, session: UUID, name: str, value: str) -> str:
        """Store the JSON text of a step, once per job and name; return the text that is stored."""
        stored = await self._namespace.run("save_step", job_id.hex, str(attempt), session.hex, name, value)
        if stored is None:
            raise FenceLostError
        return str(stored)

    async def load_steps(self, job_id: UUID) -> dict[str, str]:
        """Return the stored steps of a job by name."""
        pairs = await self._namespace.run("load_steps", job_id.hex)
        return dict(zip(pairs[::2], pairs[1::2], strict=True))

    async def running_job(self, job_id: UUID, *, attempt: int, session: UUID) -> ClaimedJob | None:
        """Return the job that runs under a fence, as its worker got it; None when the attempt owns it no more."""
        found = await self._namespace.run("running_job", job_id.hex, str(attempt), session.hex)
        if found is None:
            return None
        queue, row = found
        return claimed_jobs([row], queue)[0]

    async def read_steps(self, wanted: Sequence[tuple[UUID, str]]) -> dict[tuple[UUID, str], str]:
        """Return those of `wanted`, steps by job and name, that are stored; in scripts of bounded length."""
        found: dict[tuple[UUID, str], str] = {}
        for part in (wanted[first : first + READ_PART] for first in range(0, len(wanted), READ_PART)):
            words = [word for job, name in part for word in (job.hex, name)]
            values = await self._namespace.run("read_steps", *words)
            found |= {place: value for place, value in zip(part, values, strict=True) if value is not None}
        return found

    async def prune_jobs(
        self, retention: Retention, *, limit: int, queue: str | None = None, term: LeaderTerm | None = None
    ) -> Pruned:
        """Remove what is older than its retention, in scripts of bounded length."""
        return await pruning.prune_jobs(self._namespace, retention, limit=limit, queue=queue, term=term)


def _accepted(completions: Sequence[Completion], refused: Sequence[int]) -> list[UUID]:
    """Return the ids of the completions whose positions, counted from one, are not among those refused."""
    if not refused:
        return [done.job_id for done in completions]
    without = set(refused)
    return [done.job_id for position, done in enumerate(completions, 1) if position not in without]
