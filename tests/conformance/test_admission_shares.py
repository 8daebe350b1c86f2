"""Admission.admit_jobs: in what order the fair keys of a queue are served."""

from __future__ import annotations

import asyncio
from collections import Counter
from uuid import UUID, uuid4

import pytest

from headrace.model.batch import NewBatch
from headrace.model.fairness import jain_index
from headrace.model.job import JobSpec, JobState, NewJob
from headrace.model.limits import Gate
from tests.conformance.scenario import ALL, ARGS, MINUTE, SECOND, Scenario, items

A, B = Gate(fair_key="a"), Gate(fair_key="b")


async def enqueue(on: Scenario, owners: dict[UUID, str], fair_key: str, count: int, **spec: object) -> None:
    """Insert jobs of a fair key and note whose they are."""
    gate = spec.pop("gate", Gate(fair_key=fair_key))
    owners.update(dict.fromkeys(await on.enqueue(count, gate=gate, **spec), fair_key))


async def serve(on: Scenario, owners: dict[UUID, str], count: int, *, at_once: int = 5) -> Counter[str]:
    """Work off `count` jobs, a few at a time, and return how many of each fair key there were."""
    session, served = await on.worker(), Counter[str]()
    while (left := count - served.total()) > 0:
        jobs = await on.admit(session, min(at_once, left))
        assert jobs
        await on.end(session, *jobs)
        served.update(owners[job.id] for job in jobs)
    return served


async def test_flows_have_equal_shares(on: Scenario) -> None:
    """However many jobs each has, and whoever came first, fair keys are served alike."""
    owners: dict[UUID, str] = {}
    for fair_key, count in (("a", 200), ("b", 30), ("c", 20)):
        await enqueue(on, owners, fair_key, count)
        on.clock.advance(MINUTE)

    assert await serve(on, owners, 30) == {"a": 10, "b": 10, "c": 10}


async def test_one_admission_is_fair_within_itself(on: Scenario) -> None:
    """A claim of many jobs takes of each fair key alike, in turns."""
    owners: dict[UUID, str] = {}
    await enqueue(on, owners, "a", 20)
    await enqueue(on, owners, "b", 20)

    order = [owners[job.id] for job in await on.admit(await on.worker(), 10)]
    assert all(sorted(order[start : start + 2]) == ["a", "b"] for start in range(0, 10, 2)), order


async def test_shares_of_many_flows_are_even(on: Scenario) -> None:
    """Jain's index over ten equal flows is at least 0.95 at every moment past the first few rounds."""
    owners: dict[UUID, str] = {}
    flows = [f"flow-{number}" for number in range(10)]
    for fair_key in flows:
        await enqueue(on, owners, fair_key, 25)

    served = Counter[str]()
    for _ in range(6):
        served += await serve(on, owners, 33, at_once=11)
        assert jain_index([served[fair_key] for fair_key in flows]) >= 0.95


async def test_weights_divide_the_queue(on: Scenario) -> None:
    """A fair key of weight three is served three times as much as one of weight one."""
    owners: dict[UUID, str] = {}
    await on.gate.set_weight("default", "a", 3.0)
    await enqueue(on, owners, "a", 100)
    await enqueue(on, owners, "b", 100)

    assert await serve(on, owners, 40) == {"a": 30, "b": 10}


async def test_a_changed_weight_acts_with_the_next_admission(on: Scenario) -> None:
    """What was enqueued before is served by the new weight, without a wait for anything."""
    owners: dict[UUID, str] = {}
    await enqueue(on, owners, "a", 100)
    await enqueue(on, owners, "b", 100)
    assert await serve(on, owners, 20) == {"a": 10, "b": 10}
    await on.gate.set_weight("default", "b", 4.0)

    served = await serve(on, owners, 50)
    assert served["b"] in (39, 40, 41)


async def test_a_weight_belongs_to_one_queue(on: Scenario) -> None:
    """The weight of a fair key in another queue changes nothing here."""
    owners: dict[UUID, str] = {}
    await on.gate.set_weight("other", "a", 100.0)
    await enqueue(on, owners, "a", 20)
    await enqueue(on, owners, "b", 20)

    assert await serve(on, owners, 20) == {"a": 10, "b": 10}


async def test_dear_jobs_use_more_of_a_share(on: Scenario) -> None:
    """Shares are of cost, not of jobs: five cheap jobs run beside one of five times their cost."""
    owners: dict[UUID, str] = {}
    await enqueue(on, owners, "dear", 40, cost=5.0)
    await enqueue(on, owners, "cheap", 100, cost=1.0)

    served = await serve(on, owners, 60)
    assert served["dear"] in (10, 11)


async def test_a_small_flow_gains_its_share_at_once(on: Scenario) -> None:
    """Ten jobs that come late, beside two hundred that wait, are not behind them."""
    owners: dict[UUID, str] = {}
    await enqueue(on, owners, "big", 200)
    await serve(on, owners, 30)
    on.clock.advance(MINUTE)
    await enqueue(on, owners, "small", 10)

    assert await serve(on, owners, 20) == {"big": 10, "small": 10}


async def test_an_idle_flow_saves_nothing_up(on: Scenario) -> None:
    """A fair key that had nothing waiting gets no more than its share later, and one that was alone pays nothing."""
    owners: dict[UUID, str] = {}
    await enqueue(on, owners, "a", 5)
    await enqueue(on, owners, "b", 100)
    await serve(on, owners, 60)
    await enqueue(on, owners, "a", 50)

    served = await serve(on, owners, 20)
    assert served["a"] in (10, 11)


async def test_a_flow_that_was_held_back_saves_nothing_up(on: Scenario) -> None:
    """A fair key whose jobs a cap kept waiting gets its share from then on, and no more."""
    owners: dict[UUID, str] = {}
    await on.gate.set_cap("task:a", 0)
    await enqueue(on, owners, "a", 50, gate=Gate(fair_key="a", caps=("task:a",)))
    await enqueue(on, owners, "b", 100)
    assert await serve(on, owners, 30) == {"b": 30}
    await on.gate.set_cap("task:a", None)

    served = await serve(on, owners, 20)
    assert served["a"] in (10, 11)


async def test_what_was_cancelled_used_no_share(on: Scenario) -> None:
    """A flow that cancels a thousand jobs is served its share at once: ghosts are passed over, not paid for."""
    owners: dict[UUID, str] = {}
    spec = JobSpec("work", gate=A)
    batch_id = await on.stores.batches.create_batch(NewBatch(spec), items(1_000))
    await enqueue(on, owners, "a", 20)
    await enqueue(on, owners, "b", 20)
    await on.stores.batches.cancel_batch(batch_id)
    await on.stores.batches.settle_cancelled(batch_id, limit=600)

    assert await serve(on, owners, 20) == {"a": 10, "b": 10}


async def test_many_enqueuers_of_a_key_are_one_share(on: Scenario) -> None:
    """Sixty-four who enqueue single jobs at once get no more than the one who enqueues a list."""
    owners: dict[UUID, str] = {}
    await asyncio.gather(*(enqueue(on, owners, "crowd", 1) for _ in range(64)))
    await enqueue(on, owners, "one", 64)

    assert await serve(on, owners, 40) == {"crowd": 20, "one": 20}


async def test_gates_of_one_fair_key_are_one_share(on: Scenario) -> None:
    """A fair key gains nothing by spreading its jobs over many concurrency keys."""
    owners: dict[UUID, str] = {}
    for number in range(20):
        await enqueue(on, owners, "spread", 2, gate=Gate(fair_key="spread", key=f"k{number}", key_limit=2))
    await enqueue(on, owners, "one", 40)

    assert await serve(on, owners, 20) == {"spread": 10, "one": 10}


async def test_jobs_without_a_fair_key_are_one_more_share(on: Scenario) -> None:
    """Plain jobs, and those whose gate names no fair key, share one part of the queue."""
    owners: dict[UUID, str] = {}
    await enqueue(on, owners, "a", 40)
    owners.update(dict.fromkeys(await on.enqueue(20), "none"))
    owners.update(dict.fromkeys(await on.enqueue(20, gate=Gate(caps=("task:work",))), "none"))

    assert await serve(on, owners, 20) == {"a": 10, "none": 10}


async def test_queues_have_shares_of_their_own(on: Scenario) -> None:
    """What a fair key used in one queue does not count in another."""
    owners: dict[UUID, str] = {}
    await enqueue(on, owners, "a", 30, queue="other")
    session = await on.worker()
    await on.admit(session, 30, queue="other")
    await enqueue(on, owners, "a", 20)
    await enqueue(on, owners, "b", 20)

    assert await serve(on, owners, 20) == {"a": 10, "b": 10}


async def test_within_a_share_the_order_is_that_of_claims(on: Scenario) -> None:
    """Jobs of one fair key start by ready time less the head start of their class, lane or no lane."""
    [bulk] = await on.enqueue(gate=A, priority=9)
    on.clock.advance(MINUTE)
    [high] = await on.enqueue(gate=Gate(fair_key="a", caps=("task:high",)), priority=3)
    [low] = await on.enqueue(gate=A, priority=7)
    on.clock.advance(MINUTE)
    [late] = await on.enqueue(gate=Gate(fair_key="a", caps=("task:late",)), priority=4)

    assert [job.id for job in await on.admit(await on.worker())] == [high, late, bulk, low]


async def test_the_first_of_equal_shares_is_the_one_that_waits_longest(on: Scenario) -> None:
    """Where fair keys are owed alike, the claim order of their first jobs decides."""
    session = await on.worker()
    [second] = await on.enqueue(gate=B)
    on.clock.advance(SECOND)
    [third] = await on.enqueue(gate=A)
    [first] = await on.enqueue(gate=Gate(fair_key="c"), priority=0)

    assert [job.id for job in await on.admit(session)] == [first, second, third]


async def test_a_batch_beside_large_ones_has_its_share(on: Scenario) -> None:
    """A batch of ten, by a fair key of its own, is done after ten turns beside two of five hundred items."""
    owners: dict[UUID, str] = {}
    for name, count in (("big", 500), ("bigger", 500), ("small", 10)):
        spec = JobSpec("work", gate=Gate(fair_key=name))
        batch_id = await on.stores.batches.create_batch(NewBatch(spec), items(count))
        views = await on.stores.inspect.list_jobs(batch_id=batch_id, limit=ALL)
        owners.update((view.id, name) for view in views)

    assert (await serve(on, owners, 30))["small"] == 10


async def test_a_job_that_comes_back_is_paid_for_again(on: Scenario) -> None:
    """A share moves with each start: a fair key whose jobs are retried again and again takes nothing from others."""
    owners: dict[UUID, str] = {}
    await enqueue(on, owners, "a", 3)
    await enqueue(on, owners, "b", 30)
    session, served = await on.worker(), Counter[str]()
    for _ in range(20):
        [job] = await on.admit(session, 1)
        served[owners[job.id]] += 1
        again = owners[job.id] == "a"
        await on.end(session, job, state=JobState.READY if again else JobState.SUCCEEDED, charged=again)

    assert served == {"a": 10, "b": 10}


async def test_state_of_the_gate_is_bounded(on: Scenario) -> None:
    """Where nothing waits no fair key has a tag, however many ran one job each; weights stay."""
    await on.gate.set_weight("default", "a", 2.0)
    session = await on.worker()
    for _ in range(3):
        jobs = [NewJob(JobSpec("work", gate=Gate(fair_key=str(uuid4()))), ARGS) for _ in range(40)]
        await on.stores.jobs.insert_jobs(jobs)
        while claimed := await on.admit(session, 25):
            await on.end(session, *claimed)
        [share] = (await on.gate.list_limits()).shares
        assert (share.fair_key, share.weight) == ("a", 2.0)


async def test_a_tag_that_the_virtual_time_has_passed_is_forgotten(on: Scenario) -> None:
    """A fair key that wants nothing more is known only until those that wait have used as much."""
    owners: dict[UUID, str] = {}
    for fair_key, count, cost in (("a", 20, 1.0), ("b", 20, 1.0), ("c", 1, 4.0)):
        await enqueue(on, owners, fair_key, count, cost=cost)
    await serve(on, owners, 3)
    assert [share.fair_key for share in (await on.gate.list_limits()).shares] == ["a", "b", "c"]
    await serve(on, owners, 10)

    assert [share.fair_key for share in (await on.gate.list_limits()).shares] == ["a", "b"]


async def start_a_dear_one(on: Scenario, session: UUID) -> None:
    """Let a fair key run a job five times as dear as others."""
    [job] = await on.enqueue(gate=A, cost=5.0)
    assert [job] == [started.id for started in await on.admit(session)]


async def served_beside_a(on: Scenario, session: UUID) -> Counter[str | None]:
    """Return of which fair keys the first four are, of ten jobs of a and ten of b."""
    owners: dict[UUID, str | None] = {}
    await enqueue(on, owners, "a", 10)
    await enqueue(on, owners, "b", 10)
    return Counter(owners.get(job.id) for job in await on.admit(session, 4))


async def test_whoever_comes_when_nothing_waits_is_level_with_all(on: Scenario) -> None:
    """A busy period ends with the start that leaves nothing waiting: what was used in it counts no more."""
    session = await on.worker()
    await on.gate.set_weight("default", "b", 2.0)
    await start_a_dear_one(on, session)
    await on.gate.set_weight("default", "b", 1.0)

    assert await served_beside_a(on, session) == {"a": 2, "b": 2}


@pytest.mark.parametrize("held", [Gate(fair_key="c", caps=("task:c",)), Gate(fair_key="c", key="k", key_limit=1)])
async def test_what_was_used_counts_while_anything_waits(on: Scenario, held: Gate) -> None:
    """As long as jobs are held up, by a cap or by their key, who comes back at once gains nothing over others."""
    session = await on.worker()
    await on.gate.set_cap("task:c", 1)
    await on.enqueue(2, gate=held)
    assert len(await on.admit(session)) == 1
    await start_a_dear_one(on, session)

    assert await served_beside_a(on, session) == {"b": 4}


async def test_jobs_that_are_never_to_run_do_not_wait(on: Scenario) -> None:
    """Items of a cancelled batch behind a busy key keep no busy period up, but a job behind them does."""
    session, gate = await on.worker(), Gate(fair_key="c", key="k", key_limit=1)
    await on.enqueue(gate=gate)
    assert len(await on.admit(session)) == 1
    batch_id = await on.stores.batches.create_batch(NewBatch(JobSpec("work", gate=gate)), items(3))
    await on.stores.batches.cancel_batch(batch_id)
    await start_a_dear_one(on, session)
    assert await served_beside_a(on, session) == {"a": 2, "b": 2}

    await on.admit(session)
    await on.enqueue(gate=gate)
    await start_a_dear_one(on, session)
    assert await served_beside_a(on, session) == {"b": 4}


async def test_huge_costs_do_not_blur_small_ones(on: Scenario) -> None:
    """After jobs of the highest cost at the lowest weight, flows of the smallest costs have equal shares as before."""
    owners: dict[UUID, str] = {}
    await on.gate.set_weight("default", "heavy", 0.001)
    await enqueue(on, owners, "heavy", 60, cost=1e9)
    await enqueue(on, owners, "blocker", 1, gate=Gate(fair_key="blocker", key="none", caps=("task:none",)))
    await on.gate.set_cap("task:none", 0)
    assert await serve(on, owners, 50) == {"heavy": 50}
    await enqueue(on, owners, "a", 40, cost=0.001)
    on.clock.advance(SECOND)
    await enqueue(on, owners, "b", 40, cost=0.001)

    served = await serve(on, owners, 30)
    assert abs(served["a"] - served["b"]) <= 2, served
