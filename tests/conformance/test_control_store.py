"""ControlStore: what operators and handles ask of single jobs and queues."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from headrace.model.batch import BatchOutcome, BatchState, Progress
from headrace.model.errors import ConflictError, InvalidInputError, NotFoundError
from headrace.model.job import CancelAnswer, JobError, JobSpec, JobState, NewJob
from tests.conformance.scenario import ARGS, DAY, MINUTE, SECOND, SPEC, Scenario, item, part

S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


async def finished(on: Scenario, state: JobState = F, queue: str = "default") -> UUID:
    """Run one job to an end and return its id."""
    session, job = await on.start(queue=queue)
    await on.end(session, job, state=state, error=JobError("E", "e"), charged=True)
    return job.id


# Cancel


async def test_a_ready_job_is_cancelled_at_once(on: Scenario) -> None:
    """A job that has not started is final at once and is never claimed."""
    [job_id] = await on.enqueue()

    assert await on.stores.control.cancel_job(job_id) is CancelAnswer.CANCELLED
    view = await on.job(job_id)
    assert (view.state, view.finished_at, view.attempt) == (C, on.clock.now(), 0)
    assert await on.claim(await on.worker()) == []


async def test_a_scheduled_job_is_cancelled_at_once(on: Scenario) -> None:
    """A job that waits for its time, or for its retry, is final at once."""
    [later] = await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=on.clock.now() + DAY)])
    session, job = await on.start()
    await on.end(session, job, state=JobState.SCHEDULED, delay=MINUTE, charged=True)

    answers = [await on.stores.control.cancel_job(job_id) for job_id in (later, job.id)]
    assert answers == [CancelAnswer.CANCELLED] * 2
    assert await on.states([later, job.id]) == [C, C]


async def test_the_worker_of_a_running_job_is_asked(on: Scenario) -> None:
    """A running job goes on until its worker ends it; the wish is noted on it, once or twice alike."""
    session, job = await on.start()

    assert await on.stores.control.cancel_job(job.id) is CancelAnswer.REQUESTED
    assert await on.stores.control.cancel_job(job.id) is CancelAnswer.REQUESTED
    view = await on.job(job.id)
    assert (view.state, view.cancel_requested) == (JobState.RUNNING, True)
    assert await on.end(session, job, state=C) == [job.id]


@pytest.mark.parametrize("state", [S, F, C])
async def test_a_final_job_is_not_cancelled(on: Scenario, state: JobState) -> None:
    """Cancelling a job that has ended says so and changes nothing."""
    job_id = await finished(on, state)
    before = await on.job(job_id)

    assert await on.stores.control.cancel_job(job_id) is CancelAnswer.ALREADY_FINAL
    assert await on.job(job_id) == before


async def test_cancelling_an_unknown_job_is_not_found(on: Scenario) -> None:
    """A job that does not exist raises NotFoundError."""
    with pytest.raises(NotFoundError):
        await on.stores.control.cancel_job(uuid4())


async def test_a_cancelled_item_is_final_for_its_batch(on: Scenario) -> None:
    """Cancelling the last item of a batch lets it close."""
    batch_id = await on.batch(2)
    [job] = await on.work_off(await on.worker(), [S])
    [other] = [view for view in await on.stores.inspect.list_jobs(batch_id=batch_id) if view.id != job.id]
    await on.stores.control.cancel_job(other.id)

    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.PARTIAL]


async def test_concurrent_cancels_have_one_effect(on: Scenario) -> None:
    """Of several cancels at once one cancels; the others find the job final."""
    [job_id] = await on.enqueue()
    answers = await asyncio.gather(*(on.stores.control.cancel_job(job_id) for _ in range(6)))

    assert sorted(answers) == sorted([CancelAnswer.CANCELLED] + [CancelAnswer.ALREADY_FINAL] * 5)


# Retry


@pytest.mark.parametrize("state", [F, C])
async def test_a_dead_job_is_retried_as_a_new_one(on: Scenario, state: JobState) -> None:
    """A retry is a copy with its attempts before it, linked to the job it repeats, which stays as it is."""
    spec = replace(SPEC, queue="mail", priority=3, max_attempts=9)
    [old] = await on.stores.jobs.insert_jobs([NewJob(spec, item(7))])
    session = await on.worker()
    await on.end(session, *await on.claim(session, queue="mail"), state=state, charged=True)
    before = await on.job(old)
    on.clock.advance(MINUTE)

    new = await on.stores.control.retry_job(old)
    view = await on.job(new)
    assert new != old
    assert (view.state, view.retry_of, view.attempt, view.failures) == (JobState.READY, old, 0, 0)
    assert (view.queue, view.priority, view.max_attempts, view.args["args"]) == ("mail", 3, 9, [7])
    assert view.created_at == on.clock.now()
    assert await on.job(old) == before


async def test_a_job_is_retried_once(on: Scenario) -> None:
    """Retrying the same job again returns the retry there is, whatever became of it."""
    old = await finished(on)
    new = await on.stores.control.retry_job(old)
    assert await on.stores.control.retry_job(old) == new
    session = await on.worker()
    await on.end(session, *await on.claim(session))

    assert await on.stores.control.retry_job(old) == new
    assert await on.claim(session) == []


async def test_a_failed_retry_can_be_retried(on: Scenario) -> None:
    """Each dead letter of a chain is retried from its own id."""
    first = await finished(on)
    second = await on.stores.control.retry_job(first)
    session = await on.worker()
    await on.end(session, *await on.claim(session), state=F)
    third = await on.stores.control.retry_job(second)

    assert len({first, second, third}) == 3
    assert (await on.job(third)).retry_of == second


async def test_jobs_that_are_not_dead_are_not_retried(on: Scenario) -> None:
    """Waiting, running and succeeded jobs raise InvalidInputError and are left as they are."""
    succeeded = await finished(on, S)
    _, running = await on.start()
    [ready] = await on.enqueue()

    for job_id in (succeeded, running.id, ready):
        with pytest.raises(InvalidInputError):
            await on.stores.control.retry_job(job_id)
    assert len(await on.stores.inspect.list_jobs()) == 3


async def test_retrying_an_unknown_job_is_not_found(on: Scenario) -> None:
    """A job that does not exist raises NotFoundError."""
    with pytest.raises(NotFoundError):
        await on.stores.control.retry_job(uuid4())


async def test_concurrent_retries_make_one_job(on: Scenario) -> None:
    """Several retries of a job at once all return the one new job."""
    old = await finished(on)
    answers = await asyncio.gather(*(on.stores.control.retry_job(old) for _ in range(8)))

    assert len(set(answers)) == 1
    assert len(await on.stores.inspect.list_jobs()) == 2


async def test_a_retried_item_opens_a_new_round(on: Scenario) -> None:
    """Retrying an item of a closed batch opens a round of it, with the item's ordinal, and counts it once."""
    session = await on.worker()
    batch_id = await on.batch(2, on_close=JobSpec("report", "reports"))
    jobs = await on.work_off(session, [S, F])
    await on.stores.batches.close_batches([batch_id])

    new = await on.job(await on.stores.control.retry_job(jobs[1].id))
    view = await on.view(batch_id)
    assert (view.state, view.round, view.outcome, view.total) == (BatchState.SEALED, 2, None, 2)
    assert (new.batch_id, new.ordinal) == (batch_id, jobs[1].ordinal)
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=2, succeeded=1, waiting=1)
    await on.work_off(session, [S])
    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.SUCCEEDED]
    assert len(await on.claim(session, queue="reports")) == 2


async def test_a_cancelled_item_can_be_retried(on: Scenario) -> None:
    """A cancelled item that is retried counts by its retry alone."""
    session = await on.worker()
    batch_id = await on.batch(1)
    [job] = await on.work_off(session, [C])
    await on.stores.batches.close_batches([batch_id])
    await on.stores.control.retry_job(job.id)
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=1, waiting=1)
    await on.work_off(session, [S])

    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=1, succeeded=1)


async def test_an_item_retried_while_its_batch_runs_joins_the_round(on: Scenario) -> None:
    """Retrying an item of a batch that is not closed adds to the round that runs."""
    session = await on.worker()
    batch_id = await on.batch(2)
    [job] = await on.work_off(session, [F])
    await on.stores.control.retry_job(job.id)

    view = await on.view(batch_id)
    assert (view.state, view.round) == (BatchState.SEALED, 1)
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=2, waiting=2)
    await on.work_off(session, [S, S])
    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.SUCCEEDED]


async def test_an_item_of_an_open_batch_can_be_retried(on: Scenario) -> None:
    """A retry in a batch that is still being streamed does not disturb its slices or its total."""
    session = await on.worker()
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 2))
    [job] = await on.work_off(session, [F])
    await on.stores.control.retry_job(job.id)
    await on.stores.batches.append_slice(part(batch_id, 2, 1))
    await on.stores.batches.seal_batch(batch_id, total=3)

    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=3, waiting=3)


async def test_an_item_of_a_batch_being_cancelled_is_not_retried(on: Scenario) -> None:
    """While a batch is being cancelled nothing is added to it: ConflictError."""
    batch_id = await on.batch(2)
    [job] = await on.work_off(await on.worker(), [F])
    await on.stores.batches.cancel_batch(batch_id)

    with pytest.raises(ConflictError):
        await on.stores.control.retry_job(job.id)
    assert (await on.stores.inspect.batch_progress(batch_id)).waiting == 1


async def test_the_failures_of_a_queue_are_retried(on: Scenario) -> None:
    """All failed jobs of a queue run again; succeeded and cancelled ones, and other queues, are left alone."""
    failed = {await finished(on), await finished(on)}
    await finished(on, S)
    await finished(on, C)
    await finished(on, F, queue="mail")

    new = await on.stores.control.retry_queue("default", limit=10)
    assert {(await on.job(job_id)).retry_of for job_id in new} == failed
    assert len(await on.claim(await on.worker())) == 2
    assert await on.claim(await on.worker(), queue="mail") == []


async def test_a_queue_is_retried_within_its_limit_and_once(on: Scenario) -> None:
    """Each failed job is retried once, however often the queue is retried."""
    for _ in range(3):
        await finished(on)

    counts = [len(await on.stores.control.retry_queue("default", limit=2)) for _ in range(3)]
    assert counts == [2, 1, 0]


async def test_the_failures_of_a_queue_are_retried_from_the_oldest_on(on: Scenario) -> None:
    """A limit takes what failed first, those of one instant by their ids, and the retries are claimed in that order."""
    session = await on.worker()
    await on.enqueue(4)
    jobs = await on.claim(session)
    await on.end(session, *jobs[2:][::-1], state=JobState.FAILED)
    on.clock.advance(SECOND)
    await on.end(session, *jobs[:2][::-1], state=JobState.FAILED)

    retries = await on.stores.control.retry_queue("default", limit=3)
    claimed = await on.claim(session)
    assert [job.id for job in claimed] == retries
    assert [(await on.job(job.id)).retry_of for job in claimed] == [jobs[2].id, jobs[3].id, jobs[0].id]


async def test_only_what_had_failed_by_an_instant_is_retried(on: Scenario) -> None:
    """What failed later is left, within a limit too."""
    early = await finished(on)
    began = on.clock.now()
    on.clock.advance(SECOND)
    await finished(on)

    [new] = await on.stores.control.retry_queue("default", limit=10, until=began)
    assert (await on.job(new)).retry_of == early
    assert await on.stores.control.retry_queue("default", limit=1, until=began) == []
    assert len(await on.stores.control.retry_queue("default", limit=1)) == 1


async def test_a_limit_is_not_used_up_by_what_was_retried(on: Scenario) -> None:
    """Jobs that were retried singly before do not count against the limit of the queue's retry."""
    done = [await finished(on) for _ in range(3)]
    for job_id in done[:2]:
        await on.stores.control.retry_job(job_id)

    [new] = await on.stores.control.retry_queue("default", limit=2)
    assert (await on.job(new)).retry_of == done[2]


async def test_retrying_a_queue_reopens_its_batches_once(on: Scenario) -> None:
    """Several failed items of one batch are retried in one new round of it."""
    session = await on.worker()
    batch_id = await on.batch(3)
    await on.work_off(session, [F, F, S])
    await on.stores.batches.close_batches([batch_id])

    assert len(await on.stores.control.retry_queue("default", limit=10)) == 2
    view = await on.view(batch_id)
    assert (view.state, view.round) == (BatchState.SEALED, 2)
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=3, succeeded=1, waiting=2)


async def test_retrying_a_queue_passes_over_batches_being_cancelled(on: Scenario) -> None:
    """Failed items of a batch being cancelled stay failed; others of the queue are retried."""
    batch_id = await on.batch(2)
    await on.work_off(await on.worker(), [F])
    await on.stores.batches.cancel_batch(batch_id)
    single = await finished(on)

    [new] = await on.stores.control.retry_queue("default", limit=10)
    assert (await on.job(new)).retry_of == single


# Queues


async def test_a_paused_queue_keeps_its_running_jobs(on: Scenario) -> None:
    """Pausing stops claims alone: what runs goes on and ends."""
    session, job = await on.start()
    await on.stores.control.set_queue_paused("default", paused=True, reason="upgrade")

    assert await on.end(session, job) == [job.id]
    [stats] = await on.stores.inspect.queue_stats()
    assert (stats.paused, stats.paused_reason) == (True, "upgrade")


async def test_a_resumed_queue_shows_no_reason(on: Scenario) -> None:
    """Resuming clears the pause with its reason; pausing again takes the new one."""
    control = on.stores.control
    await control.set_queue_paused("default", paused=True, reason="first")
    await control.set_queue_paused("default", paused=True, reason="second")
    [stats] = await on.stores.inspect.queue_stats()
    assert (stats.paused, stats.paused_reason) == (True, "second")
    await control.set_queue_paused("default", paused=False)

    [stats] = await on.stores.inspect.queue_stats()
    assert (stats.paused, stats.paused_reason) == (False, None)


async def test_a_reason_to_resume_is_no_reason_of_a_pause(on: Scenario) -> None:
    """A queue that is not paused shows no reason, whatever the operator gave."""
    await on.stores.control.set_queue_paused("default", paused=False, reason="done")

    [stats] = await on.stores.inspect.queue_stats()
    assert (stats.paused, stats.paused_reason) == (False, None)
