"""JobStore.rescue_jobs: the jobs of dead sessions run elsewhere."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.model.farm import BEGUN, Begun
from headrace.model.job import ClaimedJob, JobState
from headrace.model.limits import Gate
from headrace.model.stats import Rescued, Retention
from tests.conformance.scenario import DAY, LEASE, SECOND, Scenario

GATE = Gate(caps=("task:work",), fair_key="a")


async def rescue(on: Scenario, limit: int = 100) -> Rescued:
    """Sweep once."""
    return await on.stores.jobs.rescue_jobs(limit=limit)


async def begin(on: Scenario, session: UUID, job: ClaimedJob) -> None:
    """Sign that a process of a farm has begun an attempt."""
    sign = Begun("farm", 7, 1.5, uuid4().hex, job.attempt)
    await on.stores.jobs.save_step(job.id, attempt=job.attempt, session=session, name=BEGUN, value=sign.text)


async def test_jobs_of_a_live_session_are_left_alone(on: Scenario) -> None:
    """Nothing is taken from a session until its lease has ended."""
    session, job = await on.start()
    on.clock.advance(LEASE - SECOND)

    assert await rescue(on) == Rescued()
    assert (await on.job(job.id)).session == session


async def test_an_expired_session_returns_its_jobs(on: Scenario) -> None:
    """From the end of the lease on a running job is taken back: ready, one crash more, no failure."""
    _, job = await on.start()
    on.clock.advance(LEASE)

    rescued = await rescue(on)
    view = await on.job(job.id)
    assert rescued.released == (job.id,)
    assert (view.state, view.crashes, view.failures, view.session) == (JobState.READY, 1, 0, None)


async def test_a_rescued_job_runs_as_its_next_attempt(on: Scenario) -> None:
    """Another session claims a rescued job with a higher attempt and sees the crash."""
    _, job = await on.start()
    on.clock.advance(LEASE)
    await rescue(on)

    [again] = await on.claim(await on.worker())
    assert (again.id, again.attempt, again.crashes, again.failures) == (job.id, 2, 1, 0)


async def test_a_rescue_leaves_a_record(on: Scenario) -> None:
    """The attempt that was lost is kept as crashed, with its session and the error `worker_lost`."""
    session, job = await on.start()
    on.clock.advance(LEASE)
    await rescue(on)

    [record] = await on.stores.inspect.get_attempts(job.id)
    assert record.error is not None
    assert (record.attempt, record.outcome, record.session) == (1, "crashed", session)
    assert (record.error.kind, record.finished_at) == ("worker_lost", on.clock.now())


async def test_crashes_alone_never_end_a_job(on: Scenario) -> None:
    """A job among neighbours is not convicted by the deaths of its workers, however many."""
    [job_id] = await on.enqueue()
    for _ in range(5):
        await on.claim(await on.worker())
        on.clock.advance(LEASE)
        await rescue(on)

    view = await on.job(job_id)
    assert (view.state, view.crashes, view.failures, view.attempt) == (JobState.READY, 5, 0, 5)


async def test_what_a_farm_had_begun_did_not_crash_with_its_worker(on: Scenario) -> None:
    """An attempt that runs on a farm is lost to it, `executor_lost`, and not counted; one beside it that is not is."""
    session = await on.worker()
    await on.enqueue(2)
    there, here = await on.claim(session)
    await begin(on, session, there)
    await on.stores.jobs.save_step(here.id, attempt=1, session=session, name="own", value='{"attempt": 1}')
    on.clock.advance(LEASE)

    assert sorted((await rescue(on)).released) == sorted([there.id, here.id])
    ends = []
    for job in (there, here):
        view = await on.job(job.id)
        [record] = await on.stores.inspect.get_attempts(job.id)
        assert record.error is not None
        assert (view.state, view.failures, record.session, record.finished_at) == (
            JobState.READY, 0, session, on.clock.now(),
        )  # fmt: skip
        ends.append((view.crashes, record.outcome, record.error.kind))
    assert ends == [(0, "lost", "executor_lost"), (1, "crashed", "worker_lost")]


async def test_only_the_attempt_that_a_farm_had_begun_counts(on: Scenario) -> None:
    """The sign of an attempt before says nothing of one that the farm has not begun: its worker crashed."""
    session, job = await on.start()
    await begin(on, session, job)
    await on.end(session, job, state=JobState.READY)
    await on.claim(session)
    on.clock.advance(LEASE)
    await rescue(on)

    assert (await on.job(job.id)).crashes == 1
    [record] = await on.stores.inspect.get_attempts(job.id)
    assert record.error is not None
    assert (record.attempt, record.error.kind) == (2, "worker_lost")


async def test_a_job_on_a_farm_is_not_charged_for_its_workers(on: Scenario) -> None:
    """However often the worker dies that had sent it: its failures and crashes stay what they were, and it runs."""
    [job_id] = await on.enqueue()
    for _ in range(5):
        session = await on.worker()
        [job] = await on.claim(session)
        await begin(on, session, job)
        on.clock.advance(LEASE)
        await rescue(on)

    view = await on.job(job_id)
    assert (view.state, view.crashes, view.failures, view.attempt) == (JobState.READY, 0, 0, 5)


async def test_an_at_most_once_job_that_a_farm_had_begun_fails_with_its_worker(on: Scenario) -> None:
    """Its handler may have run: it fails with kind `executor_lost`, no crash is counted, and it never runs again."""
    session, job = await on.start(at_most_once=True)
    await begin(on, session, job)
    on.clock.advance(LEASE)

    assert (await rescue(on)).failed == (job.id,)
    view = await on.job(job.id)
    assert view.error is not None
    assert (view.state, view.error.kind, view.crashes, view.failures) == (JobState.FAILED, "executor_lost", 0, 0)
    assert await on.claim(await on.worker()) == []


async def test_a_cancel_request_outlives_the_worker_that_had_sent_the_job(on: Scenario) -> None:
    """A job on a farm whose cancel was requested is cancelled in place of running again."""
    session, job = await on.start()
    await begin(on, session, job)
    await on.stores.control.cancel_job(job.id)
    on.clock.advance(LEASE)
    await rescue(on)

    view = await on.job(job.id)
    assert view.error is not None
    assert (view.state, view.error.kind, view.crashes) == (JobState.CANCELLED, "executor_lost", 0)


async def test_a_closed_session_returns_its_jobs_at_once(on: Scenario) -> None:
    """What still runs under a session that was closed can be rescued without waiting for the lease."""
    session, job = await on.start()
    await on.stores.sessions.close_session(session)

    assert (await rescue(on)).released == (job.id,)


async def test_a_session_known_to_be_gone_returns_its_jobs_at_once(on: Scenario) -> None:
    """What ran in a process that is known to be gone can be rescued without waiting for the lease."""
    session, job = await on.start()
    await on.stores.sessions.expire_sessions([session])

    assert (await rescue(on)).released == (job.id,)


async def test_a_missing_session_returns_its_jobs(on: Scenario) -> None:
    """A job whose session is not even listed any more is taken back as well."""
    _, job = await on.start()
    on.clock.advance(LEASE + DAY)
    await on.stores.jobs.prune_jobs(Retention(), limit=10)
    assert await on.stores.inspect.list_sessions() == []

    assert (await rescue(on)).released == (job.id,)


@pytest.mark.parametrize("spec", [{}, {"at_most_once": True}, {"gate": GATE}, {"gate": GATE, "at_most_once": True}])
@pytest.mark.parametrize("first", ["rescue", "prune", "overdue"])
async def test_whatever_ran_under_a_missing_session_is_taken_back(
    on: Scenario, spec: dict[str, Any], first: str
) -> None:
    """Jobs of a session whose row is gone are rescued, whatever they are and whichever sweep was there before."""
    session, other = await on.worker(), await on.worker()
    ids = await on.enqueue(3, timeout=SECOND, **spec)
    for of in (session, other, session):
        assert len((await on.look(of, 1)).jobs if "gate" in spec else await on.claim(of, 1)) == 1
    on.clock.advance(LEASE)
    taken: list[UUID] = []
    if first == "rescue":
        part = await rescue(on, 1)
        taken += [*part.released, *part.failed]
    elif first == "overdue":
        part = await on.stores.jobs.fail_overdue_jobs(grace=SECOND, limit=1, term=await on.term())
        taken += [*part.released, *part.failed]
    on.clock.advance(DAY)
    await on.stores.jobs.prune_jobs(Retention(7 * DAY, 7 * DAY, 7 * DAY, 7 * DAY), limit=1_000)
    assert await on.stores.inspect.list_sessions() == []

    rescued = await rescue(on)
    assert sorted([*taken, *rescued.released, *rescued.failed]) == ids
    assert JobState.RUNNING not in await on.states(ids)


async def test_an_at_most_once_job_fails_with_its_worker(on: Scenario) -> None:
    """A job that may run once only fails with kind `worker_lost` and never runs again."""
    session, job = await on.start(at_most_once=True)
    on.clock.advance(LEASE)

    rescued = await rescue(on)
    view = await on.job(job.id)
    assert view.error is not None
    assert (rescued.released, rescued.failed) == ((), (job.id,))
    assert (view.state, view.error.kind, view.crashes) == (JobState.FAILED, "worker_lost", 1)
    assert await on.claim(await on.worker()) == []
    [record] = await on.stores.inspect.get_attempts(job.id)
    assert (record.outcome, record.session) == ("failed", session)


async def test_a_cancel_request_outlives_its_worker(on: Scenario) -> None:
    """A job whose cancel was requested is cancelled in place of running elsewhere."""
    _, job = await on.start()
    await on.stores.control.cancel_job(job.id)
    on.clock.advance(LEASE)

    rescued = await rescue(on)
    assert (rescued.released, rescued.failed) == ((), ())
    assert (await on.job(job.id)).state is JobState.CANCELLED


async def test_a_rescue_takes_no_more_than_its_limit(on: Scenario) -> None:
    """A sweep takes back at most its limit; the next one goes on."""
    session = await on.worker()
    await on.enqueue(5)
    await on.claim(session)
    on.clock.advance(LEASE)

    assert [len((await rescue(on, 2)).released) for _ in range(4)] == [2, 2, 1, 0]


async def test_a_rescue_names_queues_to_wake_and_batches_to_close(on: Scenario) -> None:
    """The answer names the queues that gained a job and the batches that may be done now."""
    session = await on.worker()
    await on.start(session, queue="mail")
    batch_id = await on.batch(1)
    [job] = await on.claim(session)
    await on.stores.control.cancel_job(job.id)
    on.clock.advance(LEASE)

    rescued = await rescue(on)
    assert "mail" in rescued.queues
    assert batch_id in rescued.batches
    assert [closed.id for closed in await on.stores.batches.close_batches(list(rescued.batches))] == [batch_id]


async def test_only_the_dead_are_rescued(on: Scenario) -> None:
    """Of many sessions exactly the expired ones lose their jobs."""
    _, lost = await on.start()
    on.clock.advance(LEASE - SECOND)
    session, kept = await on.start()
    on.clock.advance(SECOND)

    assert (await rescue(on)).released == (lost.id,)
    assert await on.end(session, kept) == [kept.id]


async def test_a_rescue_leaves_what_does_not_run_alone(on: Scenario) -> None:
    """Jobs that wait, for their time or their turn, have no session to lose: a rescue passes them over."""
    dead = await on.worker()
    _, back = await on.start(dead)
    await on.end(dead, back, state=JobState.SCHEDULED, delay=DAY, charged=True)
    [ready] = await on.enqueue()
    await on.stores.sessions.close_session(dead)
    before = [await on.job(job_id) for job_id in (back.id, ready)]

    assert await on.stores.jobs.rescue_jobs(limit=10) == Rescued()
    assert [await on.job(job_id) for job_id in (back.id, ready)] == before


async def test_concurrent_rescuers_take_each_job_once(on: Scenario) -> None:
    """Every worker sweeps; together they take back each job once, with one crash."""
    session = await on.worker()
    ids = await on.enqueue(100)
    await on.claim(session)
    on.clock.advance(LEASE)

    sweeps = await asyncio.gather(*(rescue(on, 40) for _ in range(6)))
    released = [job_id for sweep in sweeps for job_id in sweep.released]
    released += (await rescue(on)).released
    assert sorted(released) == ids
    assert {(await on.job(job_id)).crashes for job_id in ids} == {1}


async def test_a_rescue_and_a_renewal_have_one_winner(on: Scenario) -> None:
    """A session that renews in time keeps its jobs, whoever sweeps meanwhile."""
    session, job = await on.start()
    on.clock.advance(LEASE - SECOND)
    renewal, *sweeps = await asyncio.gather(
        on.stores.sessions.renew_session(session, lease=LEASE, stats={}), *(rescue(on) for _ in range(4))
    )

    assert renewal.alive
    assert sweeps == [Rescued()] * 4
    on.clock.advance(2 * SECOND)
    assert await rescue(on) == Rescued()
    assert await on.end(uuid4(), job) == []
    assert await on.end(session, job) == [job.id]
