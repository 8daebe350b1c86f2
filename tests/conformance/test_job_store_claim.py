"""JobStore.claim_jobs: what is claimed, by whom, in which order."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

from headrace.model.job import Claim, Completion, JobState, NewJob
from headrace.model.priority import Priority, head_start
from tests.conformance.scenario import ALL, ARGS, LEASE, MINUTE, SECOND, SPEC, Scenario


async def test_a_claimed_job_runs_under_its_session(on: Scenario) -> None:
    """A claim starts the first attempt: state running, the session, the start time."""
    session, job = await on.start()

    view = await on.job(job.id)
    assert (view.state, view.session, view.attempt) == (JobState.RUNNING, session, 1)
    assert view.started_at == on.clock.now()
    assert (job.attempt, job.failures, job.crashes, job.cancel_requested) == (1, 0, 0, False)


async def test_a_claimed_job_is_not_claimed_again(on: Scenario) -> None:
    """What one session runs, no other claims."""
    session, _ = await on.start()

    assert await on.claim(session) == []
    assert await on.claim(await on.worker()) == []


async def test_a_claim_takes_no_more_than_its_limit(on: Scenario) -> None:
    """A claim of two takes two of five, and a claim of nothing takes nothing."""
    session = await on.worker()
    await on.enqueue(5)

    assert await on.claim(session, 0) == []
    assert len(await on.claim(session, 2)) == 2
    assert len(await on.claim(session, ALL)) == 3


async def test_a_claim_takes_jobs_of_its_queue_only(on: Scenario) -> None:
    """Jobs of other queues stay where they are."""
    session = await on.worker()
    [mail] = await on.enqueue(queue="mail")
    await on.enqueue()

    assert [job.id for job in await on.claim(session, queue="mail")] == [mail]


async def test_each_attempt_counts_one_more(on: Scenario) -> None:
    """The attempt of a job is one higher with each claim, whatever ended the one before."""
    session, job = await on.start()
    for attempt in (2, 3, 4):
        await on.end(session, job, state=JobState.READY)
        [job] = await on.claim(session)
        assert job.attempt == attempt


async def test_finished_scheduled_and_cancelled_jobs_are_not_claimed(on: Scenario) -> None:
    """Only ready jobs are claimed."""
    session, job = await on.start()
    await on.end(session, job)
    [cancelled] = await on.enqueue()
    await on.stores.control.cancel_job(cancelled)
    await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=on.clock.now() + SECOND)])

    assert await on.claim(session) == []


# Order


async def test_jobs_are_claimed_in_the_order_they_became_ready(on: Scenario) -> None:
    """Within one priority the job that has been ready longest comes first, across claims and within one."""
    ids = []
    for _ in range(6):
        ids += await on.enqueue()
        on.clock.advance(SECOND)
    session = await on.worker()

    claimed = [*await on.claim(session, 2), *await on.claim(session, 4)]
    assert [job.id for job in claimed] == ids


async def test_jobs_that_became_ready_together_are_claimed_by_id(on: Scenario) -> None:
    """Equal sort keys are ordered by id, so that the order is the same for every claimer."""
    session = await on.worker()
    ids = await on.enqueue(20)

    claimed = [*await on.claim(session, 7), *await on.claim(session, ALL)]
    assert [job.id for job in claimed] == sorted(ids)


async def test_a_claim_goes_on_behind_a_place(on: Scenario) -> None:
    """With `after` only jobs behind that place are claimed; those before it stay ready and come without it."""
    session = await on.worker()
    first = await on.enqueue(6)
    on.clock.advance(SECOND)
    second = await on.enqueue(2)
    [*_, last] = await on.claim(session, 3)
    [urgent] = await on.enqueue(priority=Priority.INTERACTIVE)

    onward = await on.stores.jobs.claim_jobs(Claim(session, "default", 4, after=last.place))
    assert [job.id for job in onward] == [*sorted(first)[3:], min(second)]
    await on.end(session, *onward)
    ending, claim = Completion(last.id, last.attempt, JobState.SUCCEEDED), Claim(session, "default", 4)
    ended, behind = await on.stores.jobs.exchange_jobs(session, [ending], replace(claim, after=onward[-1].place))
    assert (ended, [job.id for job in behind]) == ([last.id], [max(second)])
    assert [job.id for job in await on.claim(session)] == [urgent]


async def test_a_higher_class_overtakes_within_its_head_start(on: Scenario) -> None:
    """An urgent job overtakes one that became ready less than its head start before."""
    [bulk] = await on.enqueue(priority=Priority.BULK)
    on.clock.advance(head_start(Priority.INTERACTIVE) - SECOND)
    [urgent] = await on.enqueue(priority=Priority.INTERACTIVE)

    assert [job.id for job in await on.claim(await on.worker())] == [urgent, bulk]


async def test_a_job_is_not_overtaken_by_what_came_a_head_start_later(on: Scenario) -> None:
    """Nothing starves: a job that has waited longer than the head start comes before urgent ones."""
    [bulk] = await on.enqueue(priority=Priority.BULK)
    on.clock.advance(head_start(Priority.INTERACTIVE) + SECOND)
    [urgent] = await on.enqueue(priority=Priority.INTERACTIVE)

    assert [job.id for job in await on.claim(await on.worker())] == [bulk, urgent]


# Who may claim


async def test_an_unknown_session_claims_nothing(on: Scenario) -> None:
    """Without a registered session there is no claim."""
    await on.enqueue()

    assert await on.claim(uuid4()) == []


async def test_a_session_claims_until_its_lease_ends(on: Scenario) -> None:
    """The lease ends exactly when it says; from then on nothing is claimed."""
    session = await on.worker(lease=LEASE)
    first, second = await on.enqueue(2)
    on.clock.advance(LEASE - SECOND)

    assert [job.id for job in await on.claim(session, 1)] == [first]
    on.clock.advance(SECOND)
    assert await on.claim(session) == []
    assert (await on.job(second)).state is JobState.READY


async def test_a_closed_session_claims_nothing(on: Scenario) -> None:
    """A session that was closed is not alive."""
    session = await on.worker()
    await on.enqueue()
    await on.stores.sessions.close_session(session)

    assert await on.claim(session) == []


async def test_a_paused_queue_gives_nothing(on: Scenario) -> None:
    """Pausing stops claims of that queue alone; resuming lets them go on."""
    session = await on.worker()
    [job_id] = await on.enqueue()
    [mail] = await on.enqueue(queue="mail")
    await on.stores.control.set_queue_paused("default", paused=True)

    assert await on.claim(session) == []
    assert [job.id for job in await on.claim(session, queue="mail")] == [mail]
    await on.stores.control.set_queue_paused("default", paused=False)
    assert [job.id for job in await on.claim(session)] == [job_id]


async def test_a_batch_being_cancelled_is_passed_over(on: Scenario) -> None:
    """Items of a batch being cancelled are not claimed; what stands behind them is."""
    session = await on.worker()
    batch_id = await on.batch(5)
    on.clock.advance(SECOND)
    [other] = await on.enqueue()
    await on.stores.batches.cancel_batch(batch_id)

    assert [job.id for job in await on.claim(session, 3)] == [other]


async def test_a_staged_item_of_a_batch_being_cancelled_is_passed_over(on: Scenario) -> None:
    """Becoming due does not make an item of a batch being cancelled claimable."""
    session = await on.worker(lease=60 * MINUTE)
    batch_id = await on.batch(2, run_at=on.clock.now() + MINUTE)
    await on.stores.batches.cancel_batch(batch_id)
    on.clock.advance(MINUTE)
    await on.stores.jobs.stage_jobs(limit=10)

    assert await on.claim(session) == []


# Races


async def claim_until_empty(on: Scenario, limit: int) -> list[UUID]:
    """Claim with a session of its own until the queue gives nothing more."""
    session = await on.worker()
    claimed: list[UUID] = []
    while jobs := await on.claim(session, limit):
        claimed += [job.id for job in jobs]
        await asyncio.sleep(0)
    return claimed


async def test_two_claimers_share_a_thousand_jobs_exactly_once(on: Scenario) -> None:
    """Two claimers at once take every job of a thousand, and none twice."""
    ids = await on.enqueue(1_000)

    first, second = await asyncio.gather(claim_until_empty(on, 17), claim_until_empty(on, 23))
    assert sorted(first + second) == ids


async def test_enqueuing_while_claiming_loses_no_job(on: Scenario) -> None:
    """Jobs inserted while others are claimed are each claimed once."""
    session = await on.worker()
    seen: list[UUID] = []

    async def produce() -> list[UUID]:
        return [job_id for _ in range(10) for job_id in await on.enqueue(10)]

    async def consume() -> None:
        while len(seen) < 100:
            seen.extend(job.id for job in await on.claim(session, 7))
            await asyncio.sleep(0)

    ids, _ = await asyncio.gather(produce(), consume())
    assert sorted(seen) == sorted(ids)


async def test_a_cancel_and_a_claim_of_one_job_have_one_winner(on: Scenario) -> None:
    """A job cancelled while claimers pass is either cancelled or runs with the wish noted, never both."""
    session = await on.worker()
    ids = await on.enqueue(40)
    cancels = [on.stores.control.cancel_job(job_id) for job_id in ids]
    results = await asyncio.gather(*cancels[:20], *(on.claim(session, 4) for _ in range(10)), *cancels[20:])

    claimed = {job.id for jobs in results if isinstance(jobs, list) for job in jobs}
    for job_id in ids:
        view = await on.job(job_id)
        running = view.state is JobState.RUNNING
        assert running == (job_id in claimed)
        assert (view.state is JobState.CANCELLED) or (running and view.cancel_requested)


async def test_specifications_do_not_leak_between_jobs_of_one_claim(on: Scenario) -> None:
    """Jobs of several tasks claimed together keep their own task and attempts."""
    session = await on.worker()
    specs = [replace(SPEC, task=f"task-{number}", max_attempts=number + 1) for number in range(5)]
    ids = await on.stores.jobs.insert_jobs([NewJob(spec, ARGS) for spec in specs])

    claimed = {job.id: job for job in await on.claim(session)}
    assert [(claimed[job_id].task, claimed[job_id].max_attempts) for job_id in ids] == [
        (spec.task, spec.max_attempts) for spec in specs
    ]
