"""BatchStore.close_batches: outcomes, policies, callbacks once per round."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

import pytest

from headrace.model.batch import (
    BatchOutcome,
    BatchState,
    ClosedBatch,
    ClosePolicy,
    Progress,
    closed_at_of,
    closing_facts,
)
from headrace.model.job import ClaimedJob, JobSpec, JobState
from tests.conformance.scenario import ALL, LEASE, SECOND, Scenario, part

S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED
REPORT = JobSpec("report", "reports")


async def close(on: Scenario, *batch_ids: UUID) -> list[ClosedBatch]:
    """Try to close batches."""
    return await on.stores.batches.close_batches(batch_ids)


async def callbacks(on: Scenario) -> list[ClaimedJob]:
    """Claim the callbacks there are."""
    return await on.claim(await on.worker(), queue="reports")


@pytest.mark.parametrize(
    ("outcomes", "outcome"),
    [
        ([S, S], BatchOutcome.SUCCEEDED),
        ([S, F], BatchOutcome.PARTIAL),
        ([S, C], BatchOutcome.PARTIAL),
        ([S, F, C], BatchOutcome.PARTIAL),
        ([F, F], BatchOutcome.FAILED),
        ([F, C], BatchOutcome.FAILED),
        ([C, C], BatchOutcome.FAILED),
    ],
)
async def test_a_done_batch_closes_with_the_outcome_of_its_items(
    on: Scenario, outcomes: list[JobState], outcome: BatchOutcome
) -> None:
    """All succeeded: succeeded; some: partial; none: failed."""
    batch_id = await on.batch(len(outcomes))
    await on.work_off(await on.worker(), outcomes)
    on.clock.advance(SECOND)

    assert await close(on, batch_id) == [ClosedBatch(batch_id, outcome, None)]
    view = await on.view(batch_id)
    assert (view.state, view.outcome, view.closed_at) == (BatchState.CLOSED, outcome, on.clock.now())


async def test_a_batch_with_work_left_stays_sealed(on: Scenario) -> None:
    """A batch with an item that is ready, scheduled or running is not closed."""
    session = await on.worker()
    batch_id = await on.batch(2)
    first, second = await on.claim(session)
    await on.end(session, first)
    assert await close(on, batch_id) == []
    await on.end(session, second, state=JobState.SCHEDULED, delay=SECOND, charged=True)
    assert await close(on, batch_id) == []
    on.clock.advance(SECOND)
    await on.stores.jobs.stage_jobs(limit=10)
    assert await close(on, batch_id) == []

    assert (await on.view(batch_id)).state is BatchState.SEALED


async def test_a_batch_closes_once(on: Scenario) -> None:
    """Closing a closed batch again changes nothing and reports nothing."""
    batch_id = await on.batch(1)
    await on.work_off(await on.worker(), [S])
    await close(on, batch_id)
    before = await on.view(batch_id)
    on.clock.advance(SECOND)

    assert await close(on, batch_id) == []
    assert await on.view(batch_id) == before


async def test_several_batches_close_in_one_call(on: Scenario) -> None:
    """Of the batches asked for exactly those that are done are closed and reported; others stay untouched."""
    done, other, busy = await on.batch(1), await on.batch(1), await on.batch(1, spec=JobSpec("work", "slow"))
    await on.work_off(await on.worker(), [S, S])

    closed = await close(on, done, busy)
    assert [batch.id for batch in closed] == [done]
    assert (await on.view(other)).state is BatchState.SEALED
    assert await close(on) == []


async def test_the_callback_is_a_job_with_the_batch_id(on: Scenario) -> None:
    """Closing enqueues the callback with the batch id as its one argument, and names its queue."""
    batch_id = await on.batch(1, on_close=REPORT)
    await on.work_off(await on.worker(), [S])

    assert await close(on, batch_id) == [ClosedBatch(batch_id, BatchOutcome.SUCCEEDED, "reports")]
    [callback] = await callbacks(on)
    assert (callback.task, callback.batch_id, callback.ordinal) == ("report", None, None)
    assert callback.args == f'{{"args":["{batch_id}"],"kwargs":{{}}}}'


@pytest.mark.parametrize("count", [0, 1])
async def test_the_callback_may_have_a_second_argument(on: Scenario, count: int) -> None:
    """It is kept as it is, and a third one tells how the batch ended; one without items closes when it is made."""
    batch_id = await on.batch(count, on_close=REPORT, on_close_more='{"url": "https://example.com/?a=\'1\'"}')
    if count:
        await on.work_off(await on.worker(), [S])
        await close(on, batch_id)
    [callback] = await callbacks(on)
    [subject, more, facts] = json.loads(callback.args)["args"]
    assert (subject, more) == (str(batch_id), {"url": "https://example.com/?a='1'"})
    view, counts = await on.view(batch_id), Progress(count, succeeded=count)
    assert view.closed_at is not None and view.outcome is not None
    assert facts == closing_facts(round=1, outcome=view.outcome, counts=counts, closed_at=view.closed_at)
    assert closed_at_of(facts) == view.closed_at


async def test_a_callback_tells_of_the_round_that_ended(on: Scenario) -> None:
    """Though another one has begun: items that were retried count once, as what they are when it ends."""
    batch_id = await on.batch(4, on_close=REPORT, on_close_more="{}")
    session = await on.worker()
    await on.work_off(session, [S, F, F, C])
    await close(on, batch_id)
    await on.stores.batches.retry_failed(batch_id)
    await on.work_off(session, [S, F])
    await close(on, batch_id)

    told = {facts["round"]: facts for facts in (json.loads(job.args)["args"][2] for job in await callbacks(on))}
    counts = {number: (facts["succeeded"], facts["failed"], facts["cancelled"]) for number, facts in told.items()}
    assert counts == {1: (1, 2, 1), 2: (2, 1, 1)}
    assert {(facts["total"], facts["outcome"]) for facts in told.values()} == {(4, "partial")}


async def test_each_batch_gets_its_own_callback(on: Scenario) -> None:
    """Batches closed by one call enqueue one callback each."""
    ids = [await on.batch(1, on_close=REPORT) for _ in range(3)]
    await on.work_off(await on.worker(), [S, F, C])
    await close(on, *ids)

    assert len({callback.args for callback in await callbacks(on)}) == 3


async def test_the_callback_is_enqueued_once_per_round(on: Scenario) -> None:
    """Trying to close again enqueues nothing; a new round enqueues the callback once more."""
    session = await on.worker()
    batch_id = await on.batch(2, on_close=REPORT)
    await on.work_off(session, [S, F])
    for _ in range(3):
        await close(on, batch_id)
    assert len(await callbacks(on)) == 1
    await on.stores.batches.retry_failed(batch_id)
    await on.work_off(session, [S])
    for _ in range(3):
        await close(on, batch_id)

    assert len(await callbacks(on)) == 1


async def test_last_completions_at_once_close_a_batch_once(on: Scenario) -> None:
    """When the last items finish together and every worker tries to close, one closes; the callback comes once."""
    count = 12
    batch_id = await on.batch(count, on_close=REPORT)
    session = await on.worker()
    jobs = await on.claim(session, ALL)

    async def finish(job: ClaimedJob) -> list[ClosedBatch]:
        await on.end(session, job)
        return await close(on, batch_id)

    answers = await asyncio.gather(*map(finish, jobs))
    assert [closed.id for answer in answers for closed in answer] == [batch_id]
    assert len(await callbacks(on)) == 1


async def test_many_races_of_two_last_items_lose_no_close(on: Scenario) -> None:
    """Two last items finishing together close their batch in every one of thirty trials."""
    session = await on.worker()
    ids = [await on.batch(2) for _ in range(30)]
    jobs = await on.claim(session, ALL)

    async def finish(job: ClaimedJob) -> list[ClosedBatch]:
        await on.end(session, job)
        assert job.batch_id is not None
        return await close(on, job.batch_id)

    answers = await asyncio.gather(*map(finish, jobs))
    assert sorted(closed.id for answer in answers for closed in answer) == sorted(ids)


async def test_closing_in_opposite_order_does_not_block(on: Scenario) -> None:
    """Callers that close the same batches in opposite order all return; each batch closes once."""
    ids = [await on.batch(1, on_close=REPORT) for _ in range(10)]
    await on.work_off(await on.worker(), [S] * 10)

    answers = await asyncio.gather(*(close(on, *order) for order in [ids, ids[::-1]] * 3))
    assert sorted(closed.id for answer in answers for closed in answer) == sorted(ids)
    assert len(await callbacks(on)) == 10


# Policies


async def test_always_runs_every_item(on: Scenario) -> None:
    """Without a limit failures are never contagious: a bad item fails alone."""
    session = await on.worker()
    batch_id = await on.batch(5)
    await on.work_off(session, [F] * 4)
    assert await close(on, batch_id) == []

    assert len(await on.claim(session)) == 1
    assert (await on.view(batch_id)).state is BatchState.SEALED


async def test_a_threshold_tolerates_its_number(on: Scenario) -> None:
    """As many failures as allowed leave a batch running, and a success makes it partial."""
    session = await on.worker()
    batch_id = await on.batch(3, policy=ClosePolicy.threshold(2))
    await on.work_off(session, [F, F])
    assert await close(on, batch_id) == []
    await on.work_off(session, [S])

    assert [closed.outcome for closed in await close(on, batch_id)] == [BatchOutcome.PARTIAL]


async def test_one_failure_too_many_stops_the_batch(on: Scenario) -> None:
    """Beyond the threshold nothing more is claimed; what is left is settled, and the batch closes as failed once."""
    session = await on.worker()
    batch_id = await on.batch(10, policy=ClosePolicy.threshold(1), on_close=REPORT)
    await on.work_off(session, [F])
    assert await close(on, batch_id) == []
    assert (await on.view(batch_id)).state is BatchState.SEALED
    jobs = await on.claim(session, 2)
    await on.end(session, jobs[0], state=F)
    assert await close(on, batch_id) == []

    assert (await on.view(batch_id)).state is BatchState.CANCELLING
    assert await on.claim(session) == []
    await on.end(session, jobs[1], state=C)
    assert await close(on, batch_id) == [ClosedBatch(batch_id, BatchOutcome.FAILED, "reports")]
    assert await close(on, batch_id) == []
    assert len(await callbacks(on)) == 1


async def test_fail_fast_stops_at_the_first_failure(on: Scenario) -> None:
    """One failure is one too many."""
    batch_id = await on.batch(3, policy=ClosePolicy.fail_fast())
    await on.work_off(await on.worker(), [S, F])

    assert [closed.outcome for closed in await close(on, batch_id)] == [BatchOutcome.FAILED]


async def test_a_last_item_that_breaks_the_policy_fails_the_batch(on: Scenario) -> None:
    """When nothing is left to cancel, a batch that broke its policy closes as failed at once."""
    batch_id = await on.batch(2, policy=ClosePolicy.fail_fast())
    await on.work_off(await on.worker(), [S, F])

    assert [closed.outcome for closed in await close(on, batch_id)] == [BatchOutcome.FAILED]


async def test_a_running_item_holds_a_stopped_batch_open(on: Scenario) -> None:
    """A batch that broke its policy closes only after its running items ended."""
    session = await on.worker()
    batch_id = await on.batch(2, policy=ClosePolicy.fail_fast())
    first, second = await on.claim(session)
    await on.end(session, first, state=F)
    assert await close(on, batch_id) == []
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)
    assert await close(on, batch_id) == []
    await on.end(session, second)

    assert [closed.outcome for closed in await close(on, batch_id)] == [BatchOutcome.FAILED]


async def test_an_open_batch_is_judged_when_it_is_sealed(on: Scenario) -> None:
    """A policy takes effect on a sealed batch; while items arrive, failures only count."""
    batch_id = await on.open_batch(policy=ClosePolicy.fail_fast())
    await on.stores.batches.append_slice(part(batch_id, 0, 2))
    await on.work_off(await on.worker(), [F])
    await close(on, batch_id)
    assert (await on.view(batch_id)).state is BatchState.OPEN
    await on.stores.batches.seal_batch(batch_id, total=2)

    assert [closed.outcome for closed in await close(on, batch_id)] == [BatchOutcome.FAILED]


async def test_cancelled_items_do_not_count_as_failed(on: Scenario) -> None:
    """Cancelling single items breaks no policy."""
    batch_id = await on.batch(2, policy=ClosePolicy.fail_fast())
    await on.work_off(await on.worker(), [C, S])

    assert [closed.outcome for closed in await close(on, batch_id)] == [BatchOutcome.PARTIAL]


async def test_a_lost_worker_may_close_a_batch(on: Scenario) -> None:
    """An at-most-once item that fails with its worker is final for its batch as well."""
    batch_id = await on.batch(1, spec=JobSpec("work", at_most_once=True))
    await on.claim(await on.worker())
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)

    assert [closed.outcome for closed in await close(on, batch_id)] == [BatchOutcome.FAILED]


async def test_a_broken_policy_settles_its_batch_at_once(on: Scenario) -> None:
    """The call that finds a policy exceeded cancels what has not started, more than one slice, and closes the batch."""
    session = await on.worker()
    batch_id = await on.batch(2_500, policy=ClosePolicy.fail_fast(), on_close=JobSpec("report", "reports"))
    await on.work_off(session, [JobState.FAILED])

    closed = await on.stores.batches.close_batches([batch_id])
    assert closed == [ClosedBatch(batch_id, BatchOutcome.FAILED, "reports")]
    progress = await on.stores.inspect.batch_progress(batch_id)
    assert (progress.failed, progress.cancelled) == (1, 2_499)


async def test_a_broken_policy_stops_what_runs(on: Scenario) -> None:
    """Running items of a batch whose policy is exceeded are asked to stop at once; it closes after the last of them."""
    session = await on.worker()
    batch_id = await on.batch(3, policy=ClosePolicy.fail_fast())
    failed, running = await on.claim(session, 2)
    await on.end(session, failed, state=JobState.FAILED)

    assert await on.stores.batches.close_batches([batch_id]) == []
    assert (await on.stores.sessions.renew_session(session, lease=LEASE, stats={})).cancel_jobs == (running.id,)
    await on.end(session, running, state=JobState.CANCELLED)
    assert [closed.id for closed in await on.stores.batches.close_batches([batch_id])] == [batch_id]
