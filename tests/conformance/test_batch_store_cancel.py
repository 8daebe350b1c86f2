"""BatchStore.cancel_batch and settle_cancelled: stopping a batch in slices."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from headrace.model.batch import BatchOutcome, BatchState, ClosePolicy, Progress
from headrace.model.errors import NotFoundError
from headrace.model.job import JobSpec, JobState
from tests.conformance.scenario import ALL, LEASE, MINUTE, SECOND, SPEC, Scenario, part

S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


async def test_a_cancelled_batch_starts_nothing_more(on: Scenario) -> None:
    """From the answer on no item of the batch is claimed, before any of them was settled."""
    batch_id = await on.batch(3)
    await on.stores.batches.cancel_batch(batch_id)

    assert (await on.view(batch_id)).state is BatchState.CANCELLING
    assert await on.claim(await on.worker()) == []


async def test_settling_cancels_what_has_not_started(on: Scenario) -> None:
    """Ready and scheduled items become cancelled; the answer says how many."""
    session = await on.worker()
    batch_id = await on.batch(3)
    [first] = await on.claim(session, 1)
    await on.end(session, first, state=JobState.SCHEDULED, delay=MINUTE)
    await on.stores.batches.cancel_batch(batch_id)

    assert await on.stores.batches.settle_cancelled(batch_id, limit=ALL) == 3
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=3, cancelled=3)


async def test_settling_goes_slice_by_slice(on: Scenario) -> None:
    """Each call settles at most its limit, until nothing is left."""
    batch_id = await on.batch(5)
    await on.stores.batches.cancel_batch(batch_id)

    settled = [await on.stores.batches.settle_cancelled(batch_id, limit=2) for _ in range(4)]
    assert settled == [2, 2, 1, 0]


async def test_settling_asks_running_items_to_stop(on: Scenario) -> None:
    """The workers of running items hear of the cancel with their next heartbeat; the items stay theirs to end."""
    session = await on.worker()
    batch_id = await on.batch(4)
    running = await on.claim(session, 2)
    await on.stores.batches.cancel_batch(batch_id)

    assert await on.stores.batches.settle_cancelled(batch_id, limit=ALL) == 2
    renewal = await on.stores.sessions.renew_session(session, lease=LEASE, stats={})
    assert sorted(renewal.cancel_jobs) == sorted(job.id for job in running)
    assert sorted(await on.end(session, *running, state=C)) == sorted(job.id for job in running)


async def test_a_batch_that_is_not_cancelled_is_not_settled(on: Scenario) -> None:
    """Settling touches only batches that are being cancelled."""
    batch_id = await on.batch(2)

    assert await on.stores.batches.settle_cancelled(batch_id, limit=ALL) == 0
    assert (await on.stores.inspect.batch_progress(batch_id)).waiting == 2


async def test_other_jobs_are_not_settled(on: Scenario) -> None:
    """Cancelling one batch leaves other batches and single jobs alone."""
    await on.enqueue(2)
    batch_id, other = await on.batch(2), await on.batch(2)
    await on.stores.batches.cancel_batch(batch_id)
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)

    assert (await on.stores.inspect.batch_progress(other)).waiting == 2
    assert len(await on.claim(await on.worker())) == 4


async def test_a_settled_batch_closes_as_cancelled(on: Scenario) -> None:
    """Once nothing runs a cancelled batch closes, with its callback, whatever had succeeded or failed before."""
    session = await on.worker()
    batch_id = await on.batch(4, on_close=JobSpec("report", "reports"))
    await on.work_off(session, [S, F])
    await on.stores.batches.cancel_batch(batch_id)
    assert await on.stores.batches.close_batches([batch_id]) == []
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)

    [closed] = await on.stores.batches.close_batches([batch_id])
    assert (closed.outcome, closed.callback_queue) == (BatchOutcome.CANCELLED, "reports")
    progress = await on.stores.inspect.batch_progress(batch_id)
    assert progress == Progress(total=4, succeeded=1, failed=1, cancelled=2)
    assert len(await on.claim(session, queue="reports")) == 1


async def test_a_running_item_may_still_succeed(on: Scenario) -> None:
    """An item that finished before it heard of the cancel keeps its result."""
    session = await on.worker()
    batch_id = await on.batch(1)
    [job] = await on.claim(session)
    await on.stores.batches.cancel_batch(batch_id)
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)
    await on.end(session, job, result="1")

    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.CANCELLED]
    [item] = await on.read_all(batch_id)
    assert (item.status, item.result) == (S, 1)


async def test_a_running_item_never_runs_again(on: Scenario) -> None:
    """An item of a cancelled batch that would go back, or whose worker died, is cancelled in place of waiting."""
    session = await on.worker()
    batch_id = await on.batch(2)
    first, _ = await on.claim(session)
    await on.stores.batches.cancel_batch(batch_id)
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)
    await on.end(session, first, state=JobState.SCHEDULED, delay=SECOND, charged=True)
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)

    assert (await on.stores.inspect.batch_progress(batch_id)).cancelled == 2


async def test_an_item_that_went_back_before_it_was_settled_is_settled_later(on: Scenario) -> None:
    """An item released between cancel and settling starts no more, and is settled with the rest."""
    session = await on.worker()
    batch_id = await on.batch(1)
    [job] = await on.claim(session)
    await on.stores.batches.cancel_batch(batch_id)
    await on.end(session, job, state=JobState.READY)

    assert await on.claim(session) == []
    assert await on.stores.batches.settle_cancelled(batch_id, limit=ALL) == 1


async def test_a_closed_batch_is_left_as_it_is(on: Scenario) -> None:
    """Cancelling a closed batch changes nothing."""
    batch_id = await on.batch(1)
    await on.work_off(await on.worker(), [S])
    await on.stores.batches.close_batches([batch_id])
    before = await on.view(batch_id)
    await on.stores.batches.cancel_batch(batch_id)

    assert await on.view(batch_id) == before
    assert await on.stores.batches.settle_cancelled(batch_id, limit=ALL) == 0


async def test_cancelling_twice_is_cancelling_once(on: Scenario) -> None:
    """A second cancel of the same batch changes nothing."""
    batch_id = await on.batch(2)
    await on.stores.batches.cancel_batch(batch_id)
    before = await on.view(batch_id)
    await on.stores.batches.cancel_batch(batch_id)

    assert await on.view(batch_id) == before


async def test_an_open_batch_can_be_cancelled(on: Scenario) -> None:
    """A batch whose items were still arriving is cancelled with those it has, and closes."""
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 3))
    await on.stores.batches.cancel_batch(batch_id)
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)

    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.CANCELLED]
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=3, cancelled=3)


async def test_an_open_batch_without_items_can_be_cancelled(on: Scenario) -> None:
    """A batch that never got an item closes as cancelled, not as succeeded."""
    batch_id = await on.open_batch()
    await on.stores.batches.cancel_batch(batch_id)

    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.CANCELLED]


async def test_a_broken_policy_outweighs_a_cancel(on: Scenario) -> None:
    """A batch that broke its policy closes as failed, also when somebody cancelled it besides."""
    batch_id = await on.batch(3, policy=ClosePolicy.fail_fast())
    await on.work_off(await on.worker(), [F])
    await on.stores.batches.cancel_batch(batch_id)
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)

    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.FAILED]


async def test_an_unknown_batch_is_not_found(on: Scenario) -> None:
    """Cancelling or settling a batch that does not exist raises NotFoundError."""
    with pytest.raises(NotFoundError):
        await on.stores.batches.cancel_batch(uuid4())
    with pytest.raises(NotFoundError):
        await on.stores.batches.settle_cancelled(uuid4(), limit=1)


async def test_settling_and_claiming_at_once_lose_no_item(on: Scenario) -> None:
    """Items claimed while a batch is cancelled and settled are asked to stop or were settled; none is left over."""
    session = await on.worker()
    batch_id = await on.batch(60, spec=SPEC)

    async def cancel() -> None:
        await on.stores.batches.cancel_batch(batch_id)
        while await on.stores.batches.settle_cancelled(batch_id, limit=7):
            await asyncio.sleep(0)

    claims = await asyncio.gather(*(on.claim(session, 5) for _ in range(6)), cancel())
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)
    progress = await on.stores.inspect.batch_progress(batch_id)
    running = [job.id for jobs in claims if jobs for job in jobs]
    assert (progress.running, progress.cancelled, progress.waiting) == (len(running), 60 - len(running), 0)
    renewal = await on.stores.sessions.renew_session(session, lease=LEASE, stats={})
    assert sorted(renewal.cancel_jobs) == sorted(running)
