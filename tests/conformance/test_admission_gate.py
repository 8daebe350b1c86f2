"""Admission and claims: which queues are gated, what comes through the gate, and what never does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace.model.batch import NewBatch
from headrace.model.job import Claim, Completion, JobSpec, JobState, NewJob
from headrace.model.limits import Declared, Gate, Rate
from tests.conformance.scenario import ALL, ARGS, DAY, LEASE, SECOND, SPEC, Scenario, items, part

GATE = Gate(caps=("task:work",))
GATED = replace(SPEC, gate=GATE)


# Which queues are gated


async def test_a_queue_without_gates_pays_nothing(on: Scenario) -> None:
    """Admission leaves the jobs of an ungated queue to `claim_jobs`, and says so."""
    session = await on.worker()
    ids = await on.enqueue(3)

    answer = await on.look(session)
    assert (answer.jobs, answer.gated) == ([], False)
    claimed = await on.claim(session)
    assert ([job.id for job in claimed], [job.gated for job in claimed]) == (ids, [False] * 3)


async def test_the_first_job_with_a_gate_makes_its_queue_gated(on: Scenario) -> None:
    """From then on claims find nothing there, and admission serves plain jobs too, those that came before as well."""
    session = await on.worker()
    before = await on.enqueue(2)
    gated = await on.enqueue(2, gate=GATE)
    after = await on.enqueue(2)

    assert await on.claim(session) == []
    answer = await on.look(session)
    assert answer.gated
    assert sorted(job.id for job in answer.jobs) == sorted(before + gated + after)
    assert all(job.gated for job in answer.jobs)


async def test_other_queues_stay_ungated(on: Scenario) -> None:
    """A gate in one queue changes nothing in another."""
    session = await on.worker()
    await on.enqueue(gate=GATE)
    await on.enqueue(queue="other")

    assert not (await on.look(session, queue="other")).gated
    assert len(await on.claim(session, queue="other")) == 1


async def test_a_gated_queue_stays_gated(on: Scenario) -> None:
    """Also when all its gated jobs are gone."""
    session = await on.worker()
    await on.enqueue(gate=GATE)
    await on.end(session, *await on.admit(session))
    [plain] = await on.enqueue()

    assert await on.claim(session) == []
    assert [job.id for job in await on.admit(session)] == [plain]


@pytest.mark.parametrize("how", ["declared cap", "declared rate", "cap", "rate"])
async def test_a_limit_of_a_queue_makes_it_gated(on: Scenario, how: str) -> None:
    """A cap or rate of the queue, declared or set by an operator, holds for plain jobs that wait there already."""
    session, rate = await on.worker(), Rate(1.0, 1.0)
    await on.enqueue(3)
    acts: dict[str, Callable[[], Awaitable[None]]] = {
        "declared cap": lambda: on.gate.declare_limits(Declared(caps={"queue:default": 1})),
        "declared rate": lambda: on.gate.declare_limits(Declared(rates={"queue:default": rate})),
        "cap": lambda: on.gate.set_cap("queue:default", 1),
        "rate": lambda: on.gate.set_rate("queue:default", rate),
    }
    await acts[how]()

    assert await on.claim(session) == []
    assert len(await on.admit(session)) == 1


async def test_an_exchange_claims_nothing_of_a_gated_queue(on: Scenario) -> None:
    """Completions that take a claim along are applied; the claim brings nothing past the gate."""
    session = await on.worker()
    await on.enqueue(5, gate=GATE)
    [job] = await on.admit(session, 1)

    done = [Completion(job.id, job.attempt, JobState.SUCCEEDED)]
    accepted, claimed = await on.stores.jobs.exchange_jobs(session, done, Claim(session, "default", 5))
    assert (accepted, claimed) == ([job.id], [])


# What comes through


async def test_an_admitted_job_is_claimed(on: Scenario) -> None:
    """It runs under its session with a new attempt, is known as claimed, and ends under the usual fence."""
    session = await on.worker()
    [job_id] = await on.enqueue(gate=GATE)
    [job] = await on.admit(session)

    view = await on.job(job_id)
    assert (view.state, view.attempt, view.session, view.started_at) == (
        JobState.RUNNING, 1, session, on.clock.now(),
    )  # fmt: skip
    assert (job.id, job.attempt, job.gated, job.refused) == (job_id, 1, True, None)
    assert await on.stores.jobs.claimed_jobs(session, queue="default") == [job]
    assert await on.end(await on.worker(), job) == []
    assert await on.end(session, job) == [job_id]


async def test_never_more_than_asked_for(on: Scenario) -> None:
    """An admission fills the free slots and says that there is more."""
    session = await on.worker()
    await on.enqueue(5, gate=GATE)

    first, second = await on.look(session, 3), await on.look(session, 3)
    assert (len(first.jobs), first.look_in) == (3, timedelta())
    assert (len(second.jobs), second.look_in) == (2, None)


async def test_an_empty_queue_waits_for_an_event(on: Scenario) -> None:
    """Where nothing waits, no time brings anything."""
    session = await on.worker()
    await on.enqueue(gate=GATE)
    await on.admit(session)

    assert (await on.look(session)).look_in is None


async def test_the_soonest_of_what_waits_is_foretold(on: Scenario) -> None:
    """Of two jobs behind two buckets the time of the sooner; what an event alone can free is no part of it."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(caps={"full": 0}, rates={"slow": Rate(0.1, 1.0), "slower": Rate(0.01, 1.0)}))
    for name in ("slow", "slower"):
        await on.enqueue(2, gate=Gate(limits=((name, 1.0),)))
    await on.enqueue(gate=Gate(caps=("full",), limits=(("slow", 1.0),)))

    answer = await on.look(session)
    assert (len(answer.jobs), answer.look_in) == (2, 10 * SECOND)


async def test_the_last_of_several_times_is_foretold(on: Scenario) -> None:
    """A job that lacks two buckets starts when the later one is filled."""
    session = await on.worker(lease=DAY)
    await on.gate.declare_limits(Declared(rates={"slow": Rate(0.1, 1.0), "slower": Rate(0.01, 1.0)}))
    await on.enqueue(2, gate=Gate(limits=(("slow", 1.0), ("slower", 1.0))))

    assert (await on.look(session)).look_in == 100 * SECOND


async def test_where_a_claim_left_off_is_no_matter(on: Scenario) -> None:
    """Admission looks from the beginning, whatever place the claim names."""
    session = await on.worker()
    await on.enqueue(3, gate=GATE)
    jobs = await on.admit(session)
    await on.end(session, *jobs, state=JobState.READY)

    answer = await on.gate.admit_jobs(Claim(session, "default", ALL, after=jobs[-1].place))
    assert len(answer.jobs) == 3


async def insert(on: Scenario, session: UUID) -> None:
    """Enqueue a job."""
    await on.stores.jobs.insert_jobs([NewJob(GATED, ARGS)])


async def insert_keyed(on: Scenario, session: UUID) -> None:
    """Enqueue a job with an idempotency key, twice."""
    for _ in range(2):
        await on.stores.jobs.insert_jobs([NewJob(GATED, ARGS, key="k", body_hash="h")])


async def submit_batch(on: Scenario, session: UUID) -> None:
    """Submit a batch of one item."""
    await on.batch(1, spec=GATED)


async def stream_batch(on: Scenario, session: UUID) -> None:
    """Stream a batch of one item."""
    batch_id = await on.stores.batches.create_batch(NewBatch(GATED), None)
    await on.stores.batches.append_slice(part(batch_id, 0, 1))


async def ended(on: Scenario, session: UUID, **facts: Any) -> None:
    """Run a job to the end of an attempt."""
    await insert(on, session)
    await on.end(session, *await on.admit(session), **facts)


async def stage(on: Scenario, session: UUID) -> None:
    """Let the time of a scheduled job come."""
    await on.stores.jobs.insert_jobs([NewJob(GATED, ARGS, run_at=on.clock.now() + SECOND)])
    on.clock.advance(SECOND)
    await on.stores.jobs.stage_jobs(limit=10)


async def retry(on: Scenario, session: UUID) -> None:
    """Let the backoff of a failed attempt pass."""
    await ended(on, session, state=JobState.SCHEDULED, delay=SECOND, charged=True)
    on.clock.advance(SECOND)
    await on.stores.jobs.stage_jobs(limit=10)


async def retry_at_once(on: Scenario, session: UUID) -> None:
    """Send a failed attempt back without a delay."""
    await ended(on, session, state=JobState.READY, charged=True)


async def release(on: Scenario, session: UUID) -> None:
    """Release a job, as a worker that stops does."""
    await ended(on, session, state=JobState.READY)


async def rescue(on: Scenario, session: UUID) -> None:
    """Take a job back from a session that died."""
    await insert(on, session)
    await on.admit(await on.worker(lease=SECOND))
    on.clock.advance(SECOND)
    await on.stores.jobs.rescue_jobs(limit=10)


async def overdue(on: Scenario, session: UUID) -> None:
    """Take a job back from an attempt that ran for too long."""
    await on.enqueue(gate=GATE, timeout=SECOND)
    await on.admit(session)
    on.clock.advance(5 * SECOND)
    await on.stores.jobs.fail_overdue_jobs(grace=SECOND, limit=10, term=await on.term())


async def close_batch(on: Scenario, session: UUID) -> None:
    """Close a batch that calls back."""
    await on.stores.batches.create_batch(NewBatch(replace(SPEC, queue="other"), on_close=GATED), [])


async def retry_job(on: Scenario, session: UUID) -> None:
    """Redrive one dead letter."""
    await ended(on, session, state=JobState.FAILED)
    [dead] = await on.stores.inspect.list_jobs(state=JobState.FAILED)
    await on.stores.control.retry_job(dead.id)


async def retry_queue(on: Scenario, session: UUID) -> None:
    """Redrive the dead letters of a queue."""
    await ended(on, session, state=JobState.FAILED)
    await on.stores.control.retry_queue("default", limit=10)


async def retry_batch(on: Scenario, session: UUID) -> None:
    """Retry the failed items of a batch."""
    batch_id = await on.batch(1, spec=GATED)
    await on.end(session, *await on.admit(session), state=JobState.FAILED)
    await on.stores.batches.close_batches([batch_id])
    await on.stores.batches.retry_failed(batch_id)


WAYS = [
    insert, insert_keyed, submit_batch, stream_batch, stage, retry, retry_at_once, release, rescue, overdue,
    close_batch, retry_job, retry_queue, retry_batch,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
async def test_however_a_job_becomes_ready_it_is_admitted(
    on: Scenario, way: Callable[[Scenario, UUID], Awaitable[None]]
) -> None:
    """Every way leads to the gate, none past it, and its cap counts the job."""
    session = await on.worker(lease=DAY)
    await on.gate.declare_limits(Declared(caps={"task:work": 1}))
    await way(on, session)

    assert await on.claim(session) == []
    assert len(await on.admit(session)) == 1
    assert (await on.gate.list_limits()).caps[0].running == 1


# What does not


async def test_a_dead_session_gets_nothing(on: Scenario) -> None:
    """At the end of its lease nothing is admitted for a session, nor for one that nobody knows."""
    session = await on.worker()
    await on.enqueue(2, gate=GATE)
    on.clock.advance(LEASE)

    answer = await on.look(session)
    assert (answer.jobs, answer.gated) == ([], True)
    assert await on.running() == []


async def test_a_paused_queue_admits_nothing(on: Scenario) -> None:
    """Until it is resumed; no time ends a pause."""
    session = await on.worker()
    await on.enqueue(2, gate=GATE)
    await on.stores.control.set_queue_paused("default", paused=True)
    answer = await on.look(session)
    assert (answer.jobs, answer.look_in) == ([], None)

    await on.stores.control.set_queue_paused("default", paused=False)
    assert len(await on.admit(session)) == 2


async def test_items_of_a_batch_being_cancelled_start_no_more(on: Scenario) -> None:
    """They are passed over from the moment of the cancel, and hold up nobody behind them in their lane."""
    session = await on.worker()
    spec = JobSpec("work", gate=Gate(key="k", key_limit=1))
    batch_id = await on.stores.batches.create_batch(NewBatch(spec), items(20))
    on.clock.advance(SECOND)
    [behind] = await on.enqueue(gate=spec.gate)
    await on.stores.batches.cancel_batch(batch_id)

    answer = await on.look(session)
    assert ([job.id for job in answer.jobs], answer.look_in) == ([behind], None)


async def test_a_cancelled_job_is_passed_over(on: Scenario) -> None:
    """The next of its lane starts in its place."""
    first, second = await on.enqueue(2, gate=Gate(key="k", key_limit=1))
    await on.stores.control.cancel_job(first)

    assert [job.id for job in await on.admit(await on.worker())] == [second]


async def test_a_job_starts_not_before_its_time(on: Scenario) -> None:
    """A scheduled job is no part of its lane."""
    await on.stores.jobs.insert_jobs([NewJob(GATED, ARGS, run_at=on.clock.now() + SECOND)])

    answer = await on.look(await on.worker())
    assert (answer.jobs, answer.look_in, answer.gated) == ([], None, True)
