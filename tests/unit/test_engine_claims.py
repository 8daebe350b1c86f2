"""Claims whose answers are lost, and what they took."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace.engine import claimer as module
from headrace.engine.claimer import Claimer
from headrace.engine.telemetry import Telemetry
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim, ClaimedJob, JobSpec, NewJob
from headrace.model.session import NewSession, ProcessId
from headrace.stores.memory import open_memory_stores
from tests.waiting import wait_until


class LateClaims:
    """A job store whose first claim fails and is carried out only after its jobs were looked for."""

    def __init__(self, jobs: Any) -> None:
        self._jobs = jobs
        self._late: Claim | None = None
        self.looks = 0

    async def claim_jobs(self, claim: Claim) -> list[ClaimedJob]:
        """Lose the first claim on its way; there is nothing else to claim."""
        if self._late is None:
            self._late = claim
            raise StoreUnavailableError
        return []

    async def claimed_jobs(self, session: UUID, *, queue: str) -> list[ClaimedJob]:
        """Look, and only then let the lost claim arrive."""
        held: list[ClaimedJob] = await self._jobs.claimed_jobs(session, queue=queue)
        self.looks += 1
        if self.looks == 1 and self._late is not None:
            await self._jobs.claim_jobs(self._late)
        return held


async def test_a_claim_carried_out_late_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs are begun that a claim took after its connection broke and after the first look found nothing."""
    monkeypatch.setattr(module, "LOOK_AFTER_SECONDS", (0.0, 0.05))
    stores = open_memory_stores()
    session = NewSession(ProcessId("host", 1, 1), "host", {"default": 1}, timedelta(minutes=1))
    await stores.sessions.register_session(session)
    [job_id] = await stores.jobs.insert_jobs([NewJob(JobSpec("work"), '{"args":[],"kwargs":{}}')])
    begun: asyncio.Future[ClaimedJob] = asyncio.get_running_loop().create_future()
    late = LateClaims(stores.jobs)
    claimer = Claimer(
        late,  # type: ignore[arg-type]
        Claim(session.id, "default", 1), batch_size=1, poll_interval=timedelta(milliseconds=10),
        telemetry=Telemetry(), on_claimed=begun.set_result, known=set, acks_waiting=lambda: 0,
        admit=stores.admission.admit_jobs,
    )  # fmt: skip
    claimer.start()
    try:
        job = await asyncio.wait_for(begun, 5)
    finally:
        await claimer.stop()

    assert (job.id, job.attempt) == (job_id, 1)
    assert late.looks == 2


async def test_what_an_ack_on_its_way_takes_is_not_begun_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time comes to look for jobs of a lost claim while an ack takes a claim along: both wait for its answer."""
    monkeypatch.setattr(module, "REFILL_SECONDS", 0.05)
    stores = open_memory_stores()
    session = NewSession(ProcessId("host", 1, 1), "host", {"default": 8}, timedelta(minutes=1))
    await stores.sessions.register_session(session)
    await stores.jobs.insert_jobs([NewJob(JobSpec("work"), '{"args":[],"kwargs":{}}') for _ in range(20)])
    begun: list[UUID] = []
    claimer = Claimer(
        stores.jobs, Claim(session.id, "default", 8), batch_size=8, poll_interval=timedelta(milliseconds=10),
        telemetry=Telemetry(), on_claimed=lambda job: begun.append(job.id), known=lambda: {(job, 1) for job in begun},
        acks_waiting=lambda: 0, admit=stores.admission.admit_jobs,
    )  # fmt: skip
    claimer.start()
    await wait_until(lambda: len(begun) == 8)
    claimer.release()
    await asyncio.sleep(0)  # the next claim waits for more slots now
    along = claimer.offer()
    assert along is not None
    taken = await stores.jobs.claim_jobs(along)
    monkeypatch.setattr(claimer, "_looks", [0.0])
    claimer.release()
    await asyncio.sleep(2 * module.REFILL_SECONDS)
    assert len(begun) == 8
    claimer.settle(along, taken)
    await wait_until(lambda: len(begun) == 10)
    await claimer.stop()

    assert len(set(begun)) == 10


async def test_slots_that_an_ack_did_not_fill_are_used_at_once() -> None:
    """A claim that went along is answered late and with nothing: its slots wait neither for a poll nor for a hint."""
    stores = open_memory_stores()
    session = NewSession(ProcessId("host", 1, 1), "host", {"default": 4}, timedelta(minutes=1))
    await stores.sessions.register_session(session)
    await stores.jobs.insert_jobs([NewJob(JobSpec("work"), '{"args":[],"kwargs":{}}') for _ in range(8)])
    begun: list[UUID] = []
    claimer = Claimer(
        stores.jobs, Claim(session.id, "default", 4), batch_size=4, poll_interval=timedelta(minutes=1),
        telemetry=Telemetry(), on_claimed=lambda job: begun.append(job.id), known=set, acks_waiting=lambda: 0,
        admit=stores.admission.admit_jobs,
    )  # fmt: skip
    claimer.start()
    await wait_until(lambda: len(begun) == 4)
    for _ in range(4):
        claimer.release()
    along = claimer.offer()
    assert along is not None
    await asyncio.sleep(3 * module.ALONG_SECONDS)  # the claimer waits for a free slot now
    claimer.settle(along, [])
    await wait_until(lambda: len(begun) == 8)
    await claimer.stop()
