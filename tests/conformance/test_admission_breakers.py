"""Admission with circuit breakers: when they open, who is the probe, and how they close."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.model.breaker import BreakerReport, BreakerRule, BreakerState, OnOpen
from headrace.model.errors import NotFoundError
from headrace.model.job import ClaimedJob, JobState
from headrace.model.limits import Declared, Gate, Rate
from tests.conformance.scenario import ALL, LEASE, MINUTE, SECOND, Scenario

API = Gate(breakers=("api",))
COOLDOWN = 5 * SECOND


async def declare(on: Scenario, **rule: Any) -> None:
    """Declare the breaker of most tests."""
    await on.gate.declare_limits(Declared(breakers={"api": BreakerRule(**{"cooldown": COOLDOWN, **rule})}))


async def report(on: Scenario, *outcomes: bool, job: ClaimedJob | None = None) -> None:
    """Report calls of a job, or of ones that began before all this."""
    job_id, attempt = (job.id, job.attempt) if job else (uuid4(), 1)
    await on.gate.report_calls([BreakerReport("api", job_id, attempt, ok) for ok in outcomes])


async def state(on: Scenario) -> BreakerState:
    """Return where the breaker stands."""
    [view] = (await on.gate.list_limits()).breakers
    return view.record.state


async def half_open(on: Scenario, count: int = 5, **rule: Any) -> tuple[UUID, ClaimedJob]:
    """Enqueue jobs behind a breaker that opened, let its cooldown pass, and start the probe."""
    await declare(on, failures=1, **rule)
    await report(on, False)
    await on.enqueue(count, gate=API)
    on.clock.advance(COOLDOWN)
    session = await on.worker()
    [probe] = await on.admit(session)
    return session, probe


# Opening


async def test_failures_in_a_row_open_it(on: Scenario) -> None:
    """The third failure without a success in between opens it; jobs then wait out the cooldown."""
    session = await on.worker()
    await declare(on, failures=3)
    await on.enqueue(5, gate=API)
    await report(on, False, False, True, False, False)
    assert len(await on.admit(session, 1)) == 1

    await report(on, False)
    answer = await on.look(session)
    assert (answer.jobs, answer.look_in, await state(on)) == ([], COOLDOWN, BreakerState.OPEN)


async def test_a_high_error_rate_opens_it(on: Scenario) -> None:
    """More than half of at least ten calls failed: it opens, though no two failures were in a row for long."""
    await declare(on, failures=100, error_rate=0.5, min_calls=10)
    await report(on, *[False, True] * 4, False)
    assert await state(on) is BreakerState.CLOSED

    await report(on, False)
    assert await state(on) is BreakerState.OPEN


async def test_few_calls_say_nothing_of_a_rate(on: Scenario) -> None:
    """Below the minimum volume it stays closed, whatever failed."""
    await declare(on, failures=100, error_rate=0.5, min_calls=10)
    await report(on, *[False] * 9)

    assert await state(on) is BreakerState.CLOSED


async def test_a_rate_is_counted_within_its_window(on: Scenario) -> None:
    """Errors of a minute ago do not count any more."""
    await declare(on, failures=100, error_rate=0.5, min_calls=10, window=MINUTE)
    await report(on, *[False] * 9)
    on.clock.advance(MINUTE)
    await report(on, *[False] * 9)

    assert await state(on) is BreakerState.CLOSED


async def test_what_is_not_reported_counts_for_nothing(on: Scenario) -> None:
    """Endings that say nothing of the other side (a 429, a snooze) are not reported, and open nothing."""
    session = await on.worker()
    await declare(on, failures=1)
    await on.enqueue(3, gate=API)
    await on.end(session, *await on.admit(session), state=JobState.SCHEDULED, delay=SECOND)

    assert await state(on) is BreakerState.CLOSED


async def test_unknown_breakers_are_no_limit(on: Scenario) -> None:
    """A name that nobody declared lets everything pass, and reports of it are ignored."""
    await report(on, False)
    await on.enqueue(5, gate=API)

    assert len(await on.admit(await on.worker())) == 5
    assert (await on.gate.list_limits()).breakers == ()


async def test_other_jobs_go_on(on: Scenario) -> None:
    """An open breaker holds up its own jobs alone."""
    await declare(on, failures=1)
    await report(on, False)
    await on.enqueue(50, gate=API)
    on.clock.advance(SECOND)
    [plain] = await on.enqueue()
    [other] = await on.enqueue(gate=Gate(breakers=("other",)))

    assert {job.id for job in await on.admit(await on.worker(), 2)} == {plain, other}


async def test_a_new_rule_keeps_the_record(on: Scenario) -> None:
    """Declaring a breaker again, as each worker does at its start, does not close it."""
    await declare(on, failures=1)
    await report(on, False)
    await declare(on, failures=9)

    assert await state(on) is BreakerState.OPEN


# The probe


async def test_exactly_one_job_is_the_probe(on: Scenario) -> None:
    """After the cooldown one job passes; the others wait for what becomes of it, and no time lets them through."""
    _, probe = await half_open(on)
    answer = await on.look(await on.worker())

    assert (answer.jobs, answer.look_in, await state(on)) == ([], None, BreakerState.HALF_OPEN)
    assert await on.running() == [probe.id]


async def test_a_probe_is_one_over_all_queues_and_workers(on: Scenario) -> None:
    """Six that admit from two queues at the same moment start one probe together."""
    await declare(on, failures=1)
    await report(on, False)
    for queue in ("left", "right"):
        await on.enqueue(9, gate=API, queue=queue)
    on.clock.advance(COOLDOWN)

    async def work(queue: str) -> int:
        return len(await on.admit(await on.worker(), 3, queue=queue))

    assert sum(await asyncio.gather(*(work(queue) for queue in ("left", "right") * 3))) == 1


async def test_the_success_of_the_probe_closes_it(on: Scenario) -> None:
    """All that waited may start then."""
    session, probe = await half_open(on)
    await report(on, True, job=probe)
    await on.end(session, probe)

    assert await state(on) is BreakerState.CLOSED
    assert len(await on.admit(session)) == 4


async def test_the_failure_of_the_probe_opens_it_again(on: Scenario) -> None:
    """For another cooldown, and then another probe."""
    session, probe = await half_open(on)
    await report(on, False, job=probe)
    await on.end(session, probe, state=JobState.FAILED)

    assert (await on.look(session)).look_in == COOLDOWN
    on.clock.advance(COOLDOWN)
    assert len(await on.admit(session)) == 1


async def test_a_dead_probe_is_replaced(on: Scenario) -> None:
    """A probe whose worker died gives its place to one other, when it was taken from it and not before."""
    await half_open(on)
    on.clock.advance(LEASE)
    session = await on.worker()
    assert await on.admit(session) == []
    await on.stores.jobs.rescue_jobs(limit=10)

    [second] = await on.admit(session)
    assert await on.admit(session) == []
    await report(on, True, job=second)
    assert await state(on) is BreakerState.CLOSED


@pytest.mark.parametrize("ending", [JobState.SCHEDULED, JobState.READY, JobState.CANCELLED, JobState.SUCCEEDED])
async def test_a_probe_that_ended_without_a_word_is_replaced(on: Scenario, ending: JobState) -> None:
    """A probe that was snoozed, released or cancelled says nothing of the other side; the next job is the probe."""
    session, probe = await half_open(on)
    await on.end(session, probe, state=ending, delay=SECOND if ending is JobState.SCHEDULED else timedelta())

    [second] = await on.admit(session)
    assert (second.id, second.attempt) != (probe.id, probe.attempt)
    assert await on.admit(session) == []


async def test_reports_of_others_decide_nothing(on: Scenario) -> None:
    """While it is not closed, the endings of jobs that began before, or of an earlier probe, change nothing."""
    session, probe = await half_open(on)
    await report(on, True, True)
    await on.end(session, probe, state=JobState.READY)
    [second] = await on.admit(session)
    await report(on, True, job=probe)
    assert await state(on) is BreakerState.HALF_OPEN
    await report(on, True, job=second)

    assert await state(on) is BreakerState.CLOSED


async def test_a_job_that_may_not_start_is_no_probe(on: Scenario) -> None:
    """Where a cap or a bucket holds the first job back, the probe is one that does start."""
    await declare(on, failures=1)
    await report(on, False)
    await on.gate.set_cap("task:full", 0)
    await on.enqueue(2, gate=Gate(breakers=("api",), caps=("task:full",)))
    on.clock.advance(COOLDOWN)
    [free] = await on.enqueue(gate=API)

    assert [job.id for job in await on.admit(await on.worker())] == [free]


# Failing fast


async def test_jobs_behind_it_may_fail_fast(on: Scenario) -> None:
    """With that rule they come back at once, as running and refused, with the breaker's name and its next try."""
    session = await on.worker()
    await declare(on, failures=1, on_open=OnOpen.FAIL)
    await report(on, False)
    await on.enqueue(10, gate=API)

    jobs = await on.admit(session, 4)
    assert len(jobs) == 4
    until = (on.clock.now() + COOLDOWN).strftime("%H:%M:%S")
    assert all(job.refused and "api" in job.refused and until in job.refused for job in jobs)
    assert len(await on.running()) == 4
    assert len(await on.end(session, *jobs, state=JobState.FAILED)) == 4


async def test_all_but_the_probe_fail_fast(on: Scenario) -> None:
    """After the cooldown one job is let through; the others are refused while it is under way."""
    await declare(on, failures=1, on_open=OnOpen.FAIL)
    await report(on, False)
    await on.enqueue(5, gate=API)
    on.clock.advance(COOLDOWN)
    session = await on.worker()

    jobs = await on.admit(session)
    assert [bool(job.refused) for job in jobs] == [False, True, True, True, True]
    await report(on, True, job=jobs[0])
    await on.enqueue(2, gate=API)
    assert [job.refused for job in await on.admit(session)] == [None, None]


async def test_refused_jobs_take_no_units_but_keep_to_their_caps(on: Scenario) -> None:
    """A refused job calls nobody; it runs all the same, and so uses its room."""
    await declare(on, failures=1, on_open=OnOpen.FAIL)
    await on.gate.declare_limits(Declared(caps={"task:x": 3}, rates={"tokens": Rate(0.1, 1.0)}))
    await report(on, False)
    await on.enqueue(10, gate=Gate(breakers=("api",), caps=("task:x",), limits=(("tokens", 1.0),)))

    assert len(await on.admit(await on.worker(), ALL)) == 3
    [rate] = (await on.gate.list_limits()).rates
    assert rate.level == 1.0


async def test_a_refused_job_is_refused_again_when_it_is_looked_for(on: Scenario) -> None:
    """A worker that lost the answer learns it anew, and the probe is not taken for one that is refused."""
    await declare(on, failures=1, on_open=OnOpen.FAIL)
    await report(on, False)
    await on.enqueue(3, gate=API)
    on.clock.advance(COOLDOWN)
    session = await on.worker()
    jobs = await on.admit(session)

    again = await on.stores.jobs.claimed_jobs(session, queue="default")
    assert {job.id: bool(job.refused) for job in again} == {job.id: bool(job.refused) for job in jobs}
    assert all(job.gated for job in again)


# By hand


async def test_an_operator_opens_and_closes_it(on: Scenario) -> None:
    """Opened, it lets nothing pass for its cooldown; closed, it lets everything pass at once."""
    session = await on.worker()
    await declare(on)
    await on.enqueue(5, gate=API)
    await on.gate.set_breaker("api", BreakerState.OPEN)
    assert (await on.look(session)).look_in == COOLDOWN

    await on.gate.set_breaker("api", BreakerState.CLOSED)
    assert len(await on.admit(session)) == 5


async def test_closing_forgets_what_was_counted(on: Scenario) -> None:
    """After a close by hand it takes as many failures as ever to open it."""
    await declare(on, failures=2)
    await report(on, False)
    await on.gate.set_breaker("api", BreakerState.CLOSED)
    await report(on, False)

    assert await state(on) is BreakerState.CLOSED


async def test_an_unknown_breaker_is_not_found(on: Scenario) -> None:
    """Opening a breaker that nobody declared raises NotFoundError."""
    with pytest.raises(NotFoundError):
        await on.gate.set_breaker("nothing", BreakerState.OPEN)
