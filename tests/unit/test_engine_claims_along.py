"""Claims that go along with acks: how many, when, and what becomes of one whose answer is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace.engine import claimer as claimer_module
from headrace.engine.acks import Acks
from headrace.engine.claimer import ALONG_SECONDS, Claimer
from headrace.engine.telemetry import Telemetry
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Claim, ClaimedJob, Completion, JobSpec, JobState, NewJob
from headrace.model.session import NewSession, ProcessId
from headrace.stores.memory import open_memory_stores
from tests.waiting import wait_until

SLOTS = 4


class Jobs:
    """The job store, which counts its calls and may lose the answer of an exchange after it was carried out."""

    def __init__(self, jobs: Any) -> None:
        self._jobs = jobs
        self.claims = 0
        self.completes = 0
        self.exchanges: list[int] = []
        self.onward: list[bool] = []
        self.losing = 0
        #: Answers of exchanges wait for it.
        self.answering = asyncio.Event()
        self.answering.set()

    async def claim_jobs(self, claim: Claim) -> list[ClaimedJob]:
        """Claim alone."""
        self.claims += 1
        return await self._jobs.claim_jobs(claim)  # type: ignore[no-any-return]

    async def claimed_jobs(self, session: UUID, *, queue: str) -> list[ClaimedJob]:
        """Look what the session holds."""
        return await self._jobs.claimed_jobs(session, queue=queue)  # type: ignore[no-any-return]

    async def complete_jobs(self, session: UUID, completions: Sequence[Completion]) -> list[UUID]:
        """Complete alone."""
        self.completes += 1
        return await self._jobs.complete_jobs(session, completions)  # type: ignore[no-any-return]

    async def exchange_jobs(
        self, session: UUID, completions: Sequence[Completion], claim: Claim
    ) -> tuple[list[UUID], list[ClaimedJob]]:
        """Do both, and perhaps lose the answer."""
        self.exchanges.append(claim.limit)
        self.onward.append(claim.after is not None)
        answer = await self._jobs.exchange_jobs(session, completions, claim)
        await self.answering.wait()
        if self.losing:
            self.losing -= 1
            raise StoreUnavailableError
        return answer  # type: ignore[no-any-return]


class Bench:
    """A claimer and acks on the memory store; jobs run until the test ends them."""

    def __init__(self) -> None:
        self.stores = open_memory_stores()
        self.session = NewSession(ProcessId("host", 1, 1), "host", {"default": SLOTS}, timedelta(minutes=1))
        self.jobs = Jobs(self.stores.jobs)
        self.running: list[ClaimedJob] = []
        self.begun: list[UUID] = []
        self.claimer = Claimer(
            self.jobs,  # type: ignore[arg-type]
            Claim(self.session.id, "default", SLOTS), batch_size=SLOTS, poll_interval=timedelta(milliseconds=20),
            telemetry=Telemetry(), on_claimed=self._begin, known=self._known, acks_waiting=lambda: self.acks.unsent,
            admit=self.stores.admission.admit_jobs,
        )  # fmt: skip
        stores = replace(self.stores, jobs=self.jobs)  # type: ignore[arg-type]
        self.acks = Acks(
            stores, self.session.id, Telemetry(), claims=self.claimer, running_batches=set, on_sent=lambda *_: None
        )

    def _begin(self, job: ClaimedJob) -> None:
        self.running.append(job)
        self.begun.append(job.id)

    def _known(self) -> set[tuple[UUID, int]]:
        return self.acks.pending | {(job.id, job.attempt) for job in self.running}

    async def open(self, count: int) -> list[UUID]:
        """Enqueue jobs and start; returns their ids when the slots are full."""
        await self.stores.sessions.register_session(self.session)
        ids = await self.stores.jobs.insert_jobs([NewJob(JobSpec("work"), "{}") for _ in range(count)])
        self.acks.start()
        self.claimer.start()
        await wait_until(lambda: len(self.running) == min(SLOTS, count))
        return ids

    def end(self, count: int) -> None:
        """End running jobs, as a shift does: the slot is free before the ack is sent."""
        for _ in range(count):
            job = self.running.pop(0)
            self.acks.put(Completion(job.id, job.attempt, JobState.SUCCEEDED))
            self.claimer.release()

    async def work_off(self, ids: list[UUID]) -> None:
        """End whatever runs until all jobs are done."""
        while len(self.begun) < len(ids) or self.running or self.acks.unsent:
            self.end(len(self.running))
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop both."""
        await asyncio.wait_for(self.claimer.stop(), 5)
        await self.acks.stop()


@pytest.fixture
async def bench() -> Any:
    """A bench that is closed in the end."""
    made = Bench()
    yield made
    await made.close()


async def test_with_a_backlog_claims_go_along_with_acks(bench: Bench) -> None:
    """Each further group of jobs costs one call, not two, and every job runs once."""
    ids = await bench.open(40)
    claims = bench.jobs.claims
    await bench.work_off(ids)
    assert sorted(bench.begun) == sorted(ids)
    assert len(bench.jobs.exchanges) >= 9
    # At the end one or two claims find that nothing is left.
    assert bench.jobs.claims - claims <= 3
    assert max(bench.jobs.exchanges) <= SLOTS


async def test_a_claim_that_goes_along_takes_no_more_than_the_free_slots(bench: Bench) -> None:
    """One job of four ends: its ack takes a claim for one along, and no slot is filled twice."""
    await bench.open(40)
    bench.end(1)
    await wait_until(lambda: len(bench.running) == SLOTS)
    assert bench.jobs.exchanges == [1]
    assert len(bench.begun) == SLOTS + 1


async def test_without_a_backlog_an_ack_goes_alone(bench: Bench) -> None:
    """When the last claim found less than it asked for, acks do not ask for more."""
    await bench.open(2)
    bench.end(2)
    await wait_until(lambda: not bench.acks.unsent)
    assert bench.jobs.exchanges == []
    assert bench.jobs.completes >= 1


async def test_what_an_unanswered_exchange_took_is_found(bench: Bench) -> None:
    """The answer of an exchange is lost: its endings are sent again, its jobs are looked for, each runs once."""
    ids = await bench.open(40)
    bench.jobs.losing = 1
    await bench.work_off(ids)
    assert sorted(bench.begun) == sorted(ids)
    assert bench.jobs.losing == 0


async def test_claims_go_on_from_the_last_one_and_soon_look_from_the_beginning(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a backlog claims spare the store what has gone; a hint, or a moment later, the next one looks everywhere."""
    monkeypatch.setattr(claimer_module, "ONWARD_SECONDS", 3600.0)
    await bench.open(60)

    async def exchange() -> bool:
        bench.end(SLOTS)
        await wait_until(lambda: len(bench.running) == SLOTS)
        return bench.jobs.onward[-1]

    assert [await exchange() for _ in range(3)] == [False, True, True]
    bench.claimer.hint()
    assert [await exchange() for _ in range(2)] == [False, True]
    bench.jobs.answering.clear()
    bench.end(SLOTS)
    await wait_until(lambda: len(bench.jobs.exchanges) == 6)
    bench.claimer.hint()
    bench.jobs.answering.set()
    await wait_until(lambda: len(bench.running) == SLOTS)
    assert [await exchange() for _ in range(2)] == [False, True]
    monkeypatch.setattr(claimer_module, "ONWARD_SECONDS", 0.0)
    assert not await exchange()


async def test_nothing_is_claimed_while_a_claim_is_on_its_way(bench: Bench) -> None:
    """What an ack's claim took is known only with its answer: whatever hints come, the claimer waits for it."""
    ids = await bench.open(40)
    bench.jobs.answering.clear()
    bench.end(2)
    await wait_until(lambda: bench.jobs.exchanges)
    claims = bench.jobs.claims
    bench.end(2)
    for _ in range(5):
        bench.claimer.hint()
        await asyncio.sleep(ALONG_SECONDS)
    assert bench.jobs.claims == claims
    bench.jobs.answering.set()
    await bench.work_off(ids)
    assert sorted(bench.begun) == sorted(ids)


async def test_stopping_waits_for_a_claim_on_its_way(bench: Bench) -> None:
    """What an exchange brings while the claimer stops is begun, not forgotten."""
    await bench.open(40)
    bench.end(2)
    await bench.close()
    held = await bench.stores.jobs.claimed_jobs(bench.session.id, queue="default")
    assert {job.id for job in held} <= {job.id for job in bench.running} | {job_id for job_id, _ in bench.acks.pending}


async def test_endings_survive_a_claim_that_cannot_be_carried_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The store refuses an exchange for its claim alone: the job beside it has ended well, and the log says why."""

    async def refuse(*_arguments: Any) -> Any:
        raise ValueError("no such claim")

    [first, *_] = await bench.open(40)
    monkeypatch.setattr(bench.jobs, "exchange_jobs", refuse)
    bench.end(1)
    await wait_until(lambda: not bench.acks.unsent)
    assert (await bench.stores.inspect.final_jobs([first]))[first].state is JobState.SUCCEEDED
    assert "no such claim" in caplog.text
