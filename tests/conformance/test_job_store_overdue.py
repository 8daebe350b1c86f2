"""JobStore.fail_overdue_jobs: the safety net for handlers that cannot be stopped."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from headrace.model.job import ClaimedJob, JobState
from headrace.model.session import LeaderTerm
from headrace.model.stats import Rescued
from tests.conformance.scenario import DAY, SECOND, SPEC, Scenario

TIMEOUT = timedelta(seconds=30)
GRACE = timedelta(seconds=10)


async def start(on: Scenario, **spec: Any) -> tuple[UUID, ClaimedJob]:
    """Start a job with a timeout under a session that lives for long."""
    return await on.start(await on.worker(lease=DAY), **{"timeout": TIMEOUT, **spec})


async def sweep(on: Scenario, *, limit: int = 100, term: LeaderTerm | None = None) -> Rescued:
    """Sweep once as the leader."""
    return await on.stores.jobs.fail_overdue_jobs(grace=GRACE, limit=limit, term=term or await on.term(SECOND / 2))


async def test_an_attempt_within_its_time_is_left_alone(on: Scenario) -> None:
    """Up to timeout plus grace an attempt belongs to its worker."""
    session, job = await start(on)
    on.clock.advance(TIMEOUT + GRACE)

    assert await sweep(on) == Rescued()
    assert await on.end(session, job) == [job.id]


async def test_an_overdue_attempt_is_retried(on: Scenario) -> None:
    """Beyond timeout plus grace the job goes back with one failure more, and the record says `timeout`."""
    session, job = await start(on)
    on.clock.advance(TIMEOUT + GRACE + SECOND)

    swept = await sweep(on)
    view = await on.job(job.id)
    [record] = await on.stores.inspect.get_attempts(job.id)
    assert swept.released == (job.id,)
    assert "default" in swept.queues
    assert (view.state, view.failures, view.crashes) == (JobState.READY, 1, 0)
    assert record.error is not None
    assert (record.error.kind, record.session) == ("timeout", session)


async def test_the_late_end_of_an_overdue_attempt_is_refused(on: Scenario) -> None:
    """The thread that ran on writes nothing when it ends at last."""
    session, job = await start(on)
    on.clock.advance(TIMEOUT + GRACE + SECOND)
    await sweep(on)

    assert await on.end(session, job, result="1") == []
    assert [again.attempt for again in await on.claim(session)] == [2]


async def test_an_overdue_attempt_without_failures_left_fails(on: Scenario) -> None:
    """A job that used up its attempts fails with kind `timeout`."""
    _, job = await start(on, max_attempts=1)
    on.clock.advance(TIMEOUT + GRACE + SECOND)

    swept = await sweep(on)
    view = await on.job(job.id)
    assert view.error is not None
    assert (swept.released, swept.failed) == ((), (job.id,))
    assert (view.state, view.error.kind, view.failures) == (JobState.FAILED, "timeout", 1)


async def test_failures_allow_exactly_max_attempts(on: Scenario) -> None:
    """A job with three attempts is retried after two overdue ones and fails after the third."""
    session, job = await start(on, max_attempts=3)
    for expected in (JobState.READY, JobState.READY, JobState.FAILED):
        on.clock.advance(TIMEOUT + GRACE + SECOND)
        await sweep(on)
        assert (await on.job(job.id)).state is expected
        await on.claim(session)


async def test_an_overdue_at_most_once_job_fails(on: Scenario) -> None:
    """A job that may run once only fails, whatever its attempts allow."""
    _, job = await start(on, at_most_once=True)
    on.clock.advance(TIMEOUT + GRACE + SECOND)

    assert (await sweep(on)).failed == (job.id,)
    assert (await on.job(job.id)).state is JobState.FAILED


async def test_an_overdue_job_with_a_cancel_request_is_cancelled(on: Scenario) -> None:
    """A job whose cancel was requested does not run again."""
    _, job = await start(on)
    await on.stores.control.cancel_job(job.id)
    on.clock.advance(TIMEOUT + GRACE + SECOND)
    await sweep(on)

    assert (await on.job(job.id)).state is JobState.CANCELLED


async def test_time_in_the_queue_does_not_count(on: Scenario) -> None:
    """The timeout runs from the start of the attempt: a job that waited long has all of its time."""
    session = await on.worker(lease=DAY)
    await on.enqueue(timeout=TIMEOUT)
    on.clock.advance(100 * TIMEOUT)
    [job] = await on.claim(session)
    on.clock.advance(TIMEOUT)

    assert await sweep(on) == Rescued()
    assert await on.end(session, job) == [job.id]


async def test_a_waiting_job_is_never_overdue(on: Scenario) -> None:
    """A job that is ready or scheduled is not judged, however long it waits."""
    [job_id] = await on.enqueue(timeout=TIMEOUT)
    on.clock.advance(100 * TIMEOUT)

    assert await sweep(on) == Rescued()
    assert (await on.job(job_id)).state is JobState.READY


async def test_a_job_without_a_timeout_is_left_to_its_worker(on: Scenario) -> None:
    """Without a timeout of its own a job is not judged here."""
    _, job = await start(on, timeout=None)
    on.clock.advance(DAY / 2)

    assert await sweep(on) == Rescued()
    assert (await on.job(job.id)).state is JobState.RUNNING


async def test_a_sweep_ends_no_more_than_its_limit(on: Scenario) -> None:
    """A sweep ends at most its limit; the next one goes on."""
    session = await on.worker(lease=DAY)
    await on.enqueue(3, timeout=TIMEOUT)
    await on.claim(session)
    on.clock.advance(TIMEOUT + GRACE + SECOND)
    term = await on.term()

    assert [len((await sweep(on, limit=2, term=term)).released) for _ in range(3)] == [2, 1, 0]


async def test_a_sweep_names_the_batches_that_may_be_done(on: Scenario) -> None:
    """The answer names the batch of a failed item, so that it can be closed."""
    batch_id = await on.batch(1, spec=replace(SPEC, max_attempts=1, timeout=TIMEOUT))
    await on.claim(await on.worker(lease=DAY))
    on.clock.advance(TIMEOUT + GRACE + SECOND)

    swept = await sweep(on)
    assert batch_id in swept.batches
    assert len(await on.stores.batches.close_batches([batch_id])) == 1


async def test_a_former_leader_ends_nothing(on: Scenario) -> None:
    """A sweep under a term after which another began changes nothing."""
    _, job = await start(on)
    former = await on.term(SECOND)
    on.clock.advance(TIMEOUT + GRACE + SECOND)
    await on.term()

    assert await sweep(on, term=former) == Rescued()
    assert (await on.job(job.id)).state is JobState.RUNNING


async def test_a_made_up_term_ends_nothing(on: Scenario) -> None:
    """Naming the current number under another session is no proof of leading."""
    _, job = await start(on)
    on.clock.advance(TIMEOUT + GRACE + SECOND)
    current = await on.term()

    assert await sweep(on, term=LeaderTerm(uuid4(), current.term)) == Rescued()
    assert (await on.job(job.id)).state is JobState.RUNNING
