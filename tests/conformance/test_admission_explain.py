"""Admission.explain_job: the one reason why a job is not running."""

from __future__ import annotations

from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.model.admission import Explanation, WaitReason
from headrace.model.batch import NewBatch
from headrace.model.breaker import BreakerRule, BreakerState
from headrace.model.job import JobSpec, JobState, NewJob
from headrace.model.limits import Declared, Gate, Level, Rate
from tests.conformance.scenario import ARGS, SECOND, Scenario, items

GATES = [None, Gate(caps=("task:work",))]


async def explain(on: Scenario, job_id: UUID) -> Explanation:
    """Explain a job that must exist, and check what every explanation says."""
    found = await on.gate.explain_job(job_id)
    assert found is not None
    assert (found.job_id, found.state) == (job_id, (await on.job(job_id)).state)
    return found


def told(found: Explanation) -> tuple[Any, ...]:
    """Return reason, subject and until."""
    return (found.reason, found.subject, found.until)


async def test_an_unknown_job_has_no_reason(on: Scenario) -> None:
    """None for an id that the store does not know."""
    assert await on.gate.explain_job(uuid4()) is None


@pytest.mark.parametrize("gate", GATES, ids=["plain", "gated"])
async def test_jobs_that_do_not_wait_to_start(on: Scenario, gate: Gate | None) -> None:
    """Final, running and scheduled jobs say just that; the scheduled one until when."""
    session = await on.worker()
    await on.enqueue(3, gate=gate)
    jobs = await on.admit(session) or await on.claim(session)
    await on.end(session, jobs[0])
    await on.end(session, jobs[1], state=JobState.SCHEDULED, delay=SECOND, charged=True)
    final, scheduled, running = [await explain(on, job.id) for job in jobs]

    assert told(final) == (WaitReason.FINAL, None, None)
    assert told(running) == (WaitReason.RUNNING, None, None)
    assert told(scheduled) == (WaitReason.SCHEDULED, None, on.clock.now() + SECOND)


@pytest.mark.parametrize("gate", GATES, ids=["plain", "gated"])
async def test_a_paused_queue(on: Scenario, gate: Gate | None) -> None:
    """Names the queue and why it was paused."""
    [job_id] = await on.enqueue(gate=gate)
    await on.stores.control.set_queue_paused("default", paused=True, reason="upgrade")

    found = await explain(on, job_id)
    assert told(found) == (WaitReason.PAUSED, "default", None)
    assert found.facts["paused_reason"] == "upgrade"


@pytest.mark.parametrize("gate", GATES, ids=["plain", "gated"])
async def test_a_batch_being_cancelled(on: Scenario, gate: Gate | None) -> None:
    """Names the batch."""
    batch_id = await on.stores.batches.create_batch(NewBatch(JobSpec("work", gate=gate)), items(1))
    [view] = await on.stores.inspect.list_jobs(batch_id=batch_id)
    await on.stores.batches.cancel_batch(batch_id)

    assert told(await explain(on, view.id)) == (WaitReason.CANCELLING, str(batch_id), None)


async def test_an_open_breaker(on: Scenario) -> None:
    """Names the breaker and when it tries again; while it is being tried, no time."""
    await on.gate.declare_limits(Declared(breakers={"api": BreakerRule(cooldown=5 * SECOND)}))
    await on.gate.set_breaker("api", BreakerState.OPEN)
    first, second = await on.enqueue(2, gate=Gate(breakers=("api",)))
    assert told(await explain(on, second)) == (WaitReason.BREAKER, "api", on.clock.now() + 5 * SECOND)

    on.clock.advance(5 * SECOND)
    assert [job.id for job in await on.admit(await on.worker())] == [first]
    assert told(await explain(on, second)) == (WaitReason.BREAKER, "api", None)


async def test_an_empty_bucket(on: Scenario) -> None:
    """Names the bucket, its level, what is needed, and when there will be enough."""
    await on.gate.declare_limits(Declared(rates={"api": Rate(0.5, 4.0)}))
    first, second = await on.enqueue(2, gate=Gate(limits=(("api", 3.0),)))
    assert [job.id for job in await on.admit(await on.worker())] == [first]

    found = await explain(on, second)
    assert told(found) == (WaitReason.RATE, "api", on.clock.now() + 4 * SECOND)
    assert (found.facts["level"], found.facts["units"]) == (1.0, 3.0)


async def test_a_closed_bucket(on: Scenario) -> None:
    """Names the bucket and when it opens."""
    await on.gate.declare_limits(Declared(rates={"api": Rate(1.0, 4.0)}))
    [job_id] = await on.enqueue(gate=Gate(limits=(("api", 1.0),)))
    await on.limiter.close_bucket("api", 7 * SECOND)

    assert told(await explain(on, job_id)) == (WaitReason.RATE, "api", on.clock.now() + 7 * SECOND)


async def test_a_bucket_that_another_server_counts(on: Scenario) -> None:
    """Its level and closing there count, not those of the store's own bucket; what is unknown there is empty."""
    await on.worker()
    await on.gate.declare_limits(Declared(rates={"api": Rate(0.5, 4.0), "queue:default": Rate(1.0, 1.0)}))
    [job_id] = await on.enqueue(gate=Gate(limits=(("api", 3.0), ("free", 1.0))))
    await on.limiter.close_bucket("api", 90 * SECOND)
    await on.limiter.close_bucket("free", 90 * SECOND)
    full = Level(1.0)

    async def elsewhere(**levels: Level) -> tuple[Any, ...]:
        found = await on.gate.explain_job(job_id, levels={name.replace("_", ":"): levels[name] for name in levels})
        assert found is not None
        wait = None if found.until is None else found.until - on.clock.now()
        return (found.reason, found.subject, wait, found.facts.get("level"), found.facts.get("units"))

    assert await elsewhere(api=Level(1.0), queue_default=full) == (WaitReason.RATE, "api", 4 * SECOND, 1.0, 3.0)
    assert await elsewhere(api=Level(4.0, 7 * SECOND), queue_default=full) == (
        WaitReason.RATE, "api", 7 * SECOND, 4.0, 3.0,
    )  # fmt: skip
    assert await elsewhere(queue_default=full) == (WaitReason.RATE, "api", 6 * SECOND, 0.0, 3.0)
    above = await elsewhere(api=Level(9.0, 7 * SECOND), queue_default=full)
    assert above == (WaitReason.RATE, "api", 7 * SECOND, 4.0, 3.0), "a rate that was lowered is known here first"
    assert await elsewhere(api=Level(4.0)) == (WaitReason.RATE, "queue:default", SECOND, 0.0, 1.0)
    # A rate that the store does not have is no limit, whatever is left of it elsewhere.
    found = await elsewhere(api=Level(3.0), queue_default=full, free=Level(0.0, SECOND))
    assert found == (WaitReason.ORDER, None, None, None, None)
    assert told(await explain(on, job_id)) == (WaitReason.RATE, "api", on.clock.now() + 90 * SECOND)


@pytest.mark.parametrize("name", ["task:work", "queue:default"])
async def test_a_cap(on: Scenario, name: str) -> None:
    """Names the cap, its number, how many run, and how many wait before it."""
    await on.gate.declare_limits(Declared(caps={name: 2}))
    ids = await on.enqueue(5, gate=Gate(caps=("task:work",)))
    await on.admit(await on.worker())

    found = await explain(on, ids[4])
    assert told(found) == (WaitReason.CAP, name, None)
    assert (found.facts["cap"], found.facts["running"], found.facts["ahead"]) == (2, 2, 2)


async def test_a_concurrency_key(on: Scenario) -> None:
    """Names the key."""
    ids = await on.enqueue(5, gate=Gate(key="user-1", key_limit=2))
    await on.admit(await on.worker())

    found = await explain(on, ids[4])
    assert told(found) == (WaitReason.CAP, "user-1", None)
    assert (found.facts["cap"], found.facts["running"]) == (2, 2)


async def test_a_job_that_keeps_its_key(on: Scenario) -> None:
    """Behind an in-order key the job is named that holds it: while it runs, and while it waits for its retry."""
    session = await on.worker()
    first, second = await on.enqueue(2, gate=Gate(key="user-1", key_limit=1))
    jobs = await on.admit(session)
    found = await explain(on, second)
    assert (told(found), found.facts["held_by"]) == ((WaitReason.CAP, "user-1", None), str(first))

    await on.end(session, *jobs, state=JobState.SCHEDULED, delay=SECOND, charged=True)
    found = await explain(on, second)
    assert (told(found), found.facts["held_by"]) == ((WaitReason.CAP, "user-1", None), str(first))


@pytest.mark.parametrize("gate", GATES, ids=["plain", "gated"])
async def test_a_queue_that_nobody_serves(on: Scenario, gate: Gate | None) -> None:
    """Names the queue where no live worker does."""
    await on.worker(queues={"other": 1})
    dead = await on.worker(lease=SECOND)
    on.clock.advance(SECOND)
    [job_id] = await on.enqueue(gate=gate)

    assert dead
    assert told(await explain(on, job_id)) == (WaitReason.NO_WORKER, "default", None)


@pytest.mark.parametrize("gate", GATES, ids=["plain", "gated"])
async def test_a_place_in_line(on: Scenario, gate: Gate | None) -> None:
    """Says how many jobs come before it where nothing else holds it back."""
    await on.worker()
    ids = await on.enqueue(5, gate=gate)
    found = [await explain(on, job_id) for job_id in (ids[0], ids[3])]

    assert [told(each)[0] for each in found] == [WaitReason.ORDER] * 2
    assert [each.facts["ahead"] for each in found] == [0, 3]


async def test_jobs_with_other_gates(on: Scenario) -> None:
    """Says whether jobs with other gates wait in its queue, with or without one, and not those of another queue."""
    session = await on.worker()
    keys = [Gate(key=f"user-{number}", key_limit=1) for number in range(2)]
    await on.enqueue(queue="other", gate=keys[1])
    await on.gate.declare_limits(Declared(caps={"queue:default": 9}))
    plain = await on.enqueue(2)

    async def placed(job_id: UUID) -> tuple[Any, ...]:
        found = await explain(on, job_id)
        return (found.reason, found.facts["ahead"], found.facts["others"])

    alone = [await placed(job_id) for job_id in plain]
    on.clock.advance(SECOND)
    [first] = await on.enqueue(gate=keys[0])
    beside = [await placed(job_id) for job_id in (*plain, first)]
    assert len(await on.admit(session, limit=2)) == 2
    left = await placed(first)
    [second] = await on.enqueue(gate=keys[1])
    both = [await placed(job_id) for job_id in (first, second)]

    order = WaitReason.ORDER
    assert alone == [(order, 0, False), (order, 1, False)]
    assert beside == [(order, 0, True), (order, 1, True), (order, 0, True)]
    assert left == (order, 0, False)
    assert both == [(order, 0, True), (order, 0, True)]


async def test_the_first_reason_is_told(on: Scenario) -> None:
    """Of several reasons the one that comes first in the list of reasons."""
    gate = Gate(breakers=("api",), limits=(("api", 1.0),), caps=("task:work",))
    breakers, rates = {"api": BreakerRule()}, {"api": Rate(1.0, 1.0)}
    await on.gate.declare_limits(Declared(caps={"task:work": 0}, rates=rates, breakers=breakers))
    await on.gate.set_breaker("api", BreakerState.OPEN)
    await on.limiter.close_bucket("api", SECOND)
    [job_id] = await on.enqueue(gate=gate)
    await on.stores.control.set_queue_paused("default", paused=True)

    reasons = [(await explain(on, job_id)).reason]
    await on.stores.control.set_queue_paused("default", paused=False)
    reasons.append((await explain(on, job_id)).reason)
    await on.gate.set_breaker("api", BreakerState.CLOSED)
    reasons.append((await explain(on, job_id)).reason)
    on.clock.advance(SECOND)
    reasons.append((await explain(on, job_id)).reason)
    await on.gate.set_cap("task:work", 1)
    reasons.append((await explain(on, job_id)).reason)
    assert reasons == [
        WaitReason.PAUSED, WaitReason.BREAKER, WaitReason.RATE, WaitReason.CAP, WaitReason.NO_WORKER,
    ]  # fmt: skip


async def test_the_first_of_a_lane_holds_up_those_behind(on: Scenario) -> None:
    """A cheap job behind a dear one waits for the units of the dear one, as admission has it."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(rates={"tokens": Rate(1.0, 10.0)}))
    gate = Gate(limits=(("tokens", None),))
    await on.enqueue(gate=gate, cost=8.0)
    on.clock.advance(SECOND)
    await on.enqueue(gate=gate, cost=6.0)
    on.clock.advance(SECOND)
    [cheap] = await on.enqueue(gate=gate, cost=1.0)
    await on.admit(session)

    found = await explain(on, cheap)
    assert told(found) == (WaitReason.RATE, "tokens", on.clock.now() + 4 * SECOND)
    assert (found.facts["units"], found.facts["ahead"]) == (6.0, 1)


async def test_a_job_that_is_said_to_be_next_is_admitted(on: Scenario) -> None:
    """Explanation and admission ask the same: where no limit is named, the job starts."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(caps={"task:work": 1}, rates={"api": Rate(1.0, 2.0)}))
    specs = [
        Gate(caps=("task:work",)), Gate(limits=(("api", 1.0),)), Gate(key="k", key_limit=1), Gate(fair_key="f"), None,
    ]  # fmt: skip
    for gate in specs * 3:
        await on.stores.jobs.insert_jobs([NewJob(JobSpec("work", gate=gate), ARGS)])
    for _ in range(3):
        views = await on.stores.inspect.list_jobs(state=JobState.READY)
        free = {
            view.id
            for view in views
            for found in [await explain(on, view.id)]
            if found.reason is WaitReason.ORDER and not found.facts["ahead"]
        }
        jobs = await on.admit(session)
        assert free <= {job.id for job in jobs}
        await on.end(session, *jobs)
