"""BatchStore.sweep_batches: the leader's safety net."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from headrace.model.batch import BatchOutcome, BatchState, ClosedBatch, ClosePolicy
from headrace.model.errors import ConflictError
from headrace.model.job import JobSpec, JobState
from headrace.model.session import LeaderTerm
from tests.conformance.scenario import DAY, LEASE, SECOND, Scenario, part

S, F = JobState.SUCCEEDED, JobState.FAILED
SEAL_TIMEOUT = timedelta(hours=1)


async def sweep(on: Scenario, term: LeaderTerm, *, limit: int = 100) -> list[ClosedBatch]:
    """Sweep once as the leader."""
    return await on.stores.batches.sweep_batches(term=term, seal_timeout=SEAL_TIMEOUT, limit=limit)


async def test_a_sweep_closes_what_nobody_closed(on: Scenario) -> None:
    """A batch whose worker died between ack and close is closed by the sweep, with its callback, once."""
    term = await on.term()
    done = await on.batch(1, on_close=JobSpec("report", "reports"))
    on.clock.advance(SECOND)
    busy = await on.batch(1)
    await on.work_off(await on.worker(), [S])

    assert await sweep(on, term) == [ClosedBatch(done, BatchOutcome.SUCCEEDED, "reports")]
    assert await sweep(on, term) == []
    assert (await on.view(busy)).state is BatchState.SEALED
    assert len(await on.claim(await on.worker(), queue="reports")) == 1


async def test_a_sweep_settles_and_closes_what_is_being_cancelled(on: Scenario) -> None:
    """Batches being cancelled are settled and closed once."""
    term = await on.term()
    batch_id = await on.batch(5)
    await on.stores.batches.cancel_batch(batch_id)

    closed: list[ClosedBatch] = []
    for _ in range(6):
        closed += await sweep(on, term, limit=2)
    assert [(batch.id, batch.outcome) for batch in closed] == [(batch_id, BatchOutcome.CANCELLED)]


async def test_one_sweep_settles_many_items(on: Scenario) -> None:
    """A batch of many more items than a slice is settled and closed in one sweep."""
    term = await on.term()
    batch_id = await on.batch(50)
    await on.stores.batches.cancel_batch(batch_id)

    assert [closed.id for closed in await sweep(on, term, limit=5)] == [batch_id]


async def test_one_sweep_is_bounded(on: Scenario) -> None:
    """What is left after twenty slices waits for the next sweep."""
    term = await on.term()
    batch_id = await on.batch(25)
    await on.stores.batches.cancel_batch(batch_id)
    assert await sweep(on, term, limit=1) == []
    assert (await on.stores.inspect.batch_progress(batch_id)).cancelled == 20

    assert [closed.id for closed in await sweep(on, term, limit=1)] == [batch_id]


async def test_a_sweep_asks_running_items_to_stop(on: Scenario) -> None:
    """The running items of a batch being cancelled are asked to stop, and the batch closes after them."""
    term, session = await on.term(), await on.worker()
    batch_id = await on.batch(2)
    [job] = await on.claim(session, 1)
    await on.stores.batches.cancel_batch(batch_id)
    assert await sweep(on, term) == []

    assert (await on.stores.sessions.renew_session(session, lease=LEASE, stats={})).cancel_jobs == (job.id,)
    await on.end(session, job, state=JobState.CANCELLED)
    assert [closed.id for closed in await sweep(on, term)] == [batch_id]


async def test_a_sweep_enforces_policies(on: Scenario) -> None:
    """A batch that broke its policy is stopped, settled and closed as failed without anybody else's help."""
    term = await on.term()
    batch_id = await on.batch(5, policy=ClosePolicy.fail_fast())
    await on.work_off(await on.worker(), [F])

    closed = [batch for _ in range(3) for batch in await sweep(on, term)]
    assert [(batch.id, batch.outcome) for batch in closed] == [(batch_id, BatchOutcome.FAILED)]
    assert (await on.stores.inspect.batch_progress(batch_id)).cancelled == 4


async def test_a_silent_open_batch_is_abandoned(on: Scenario) -> None:
    """An open batch whose submitter was silent for the seal timeout is abandoned; it is not closed."""
    term = await on.term()
    batch_id = await on.open_batch()
    on.clock.advance(SEAL_TIMEOUT - SECOND)
    await sweep(on, term)
    assert (await on.view(batch_id)).state is BatchState.OPEN
    on.clock.advance(2 * SECOND)

    assert await sweep(on, term) == []
    assert (await on.view(batch_id)).state is BatchState.ABANDONED


async def test_appending_keeps_a_batch_open(on: Scenario) -> None:
    """The silence of a submitter is counted from its last slice."""
    term = await on.term()
    batch_id = await on.open_batch()
    on.clock.advance(SEAL_TIMEOUT - SECOND)
    await on.stores.batches.append_slice(part(batch_id, 0, 1))
    on.clock.advance(SEAL_TIMEOUT - SECOND)
    await sweep(on, term)

    assert (await on.view(batch_id)).state is BatchState.OPEN


async def test_reopening_starts_the_time_anew(on: Scenario) -> None:
    """The silence of the submitter of a new round is counted from its opening."""
    term = await on.term()
    batch_id = await on.batch(0)
    on.clock.advance(2 * SEAL_TIMEOUT)
    await on.stores.batches.reopen_batch(batch_id, key="more")
    on.clock.advance(SEAL_TIMEOUT - SECOND)
    await sweep(on, term)

    assert (await on.view(batch_id)).state is BatchState.OPEN


async def abandoned(on: Scenario) -> tuple[LeaderTerm, UUID]:
    """Return the leader's term and an abandoned batch with one item."""
    term = await on.term()
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 1))
    on.clock.advance(SEAL_TIMEOUT + SECOND)
    await sweep(on, term)
    return term, batch_id


async def test_an_abandoned_batch_can_be_continued(on: Scenario) -> None:
    """Appending opens an abandoned batch again; slices it holds are still known."""
    term, batch_id = await abandoned(on)

    assert await on.stores.batches.append_slice(part(batch_id, 0, 1)) is False
    assert await on.stores.batches.append_slice(part(batch_id, 1, 1)) is True
    assert (await on.view(batch_id)).state is BatchState.OPEN
    await sweep(on, term)
    assert (await on.view(batch_id)).state is BatchState.OPEN


async def test_an_abandoned_batch_can_be_sealed(on: Scenario) -> None:
    """A submitter that only had to seal can still do so."""
    _, batch_id = await abandoned(on)
    await on.stores.batches.seal_batch(batch_id, total=1)

    assert (await on.view(batch_id)).state is BatchState.SEALED


async def test_an_abandoned_batch_can_be_cancelled(on: Scenario) -> None:
    """Cancelling an abandoned batch settles and closes it."""
    term, batch_id = await abandoned(on)
    await on.stores.batches.cancel_batch(batch_id)

    closed = [batch for _ in range(3) for batch in await sweep(on, term)]
    assert [(batch.id, batch.outcome) for batch in closed] == [(batch_id, BatchOutcome.CANCELLED)]


async def test_the_items_of_an_abandoned_batch_still_run(on: Scenario) -> None:
    """What was appended before the submitter went silent is claimed as ever."""
    await abandoned(on)

    assert len(await on.claim(await on.worker())) == 1


async def test_an_abandoned_batch_opens_no_round(on: Scenario) -> None:
    """The unsealed round has to be ended first: another key raises ConflictError."""
    _, batch_id = await abandoned(on)

    with pytest.raises(ConflictError):
        await on.stores.batches.reopen_batch(batch_id, key="more")


async def test_sealed_and_closed_batches_are_never_abandoned(on: Scenario) -> None:
    """Only open batches wait for their submitter."""
    term = await on.term(lease=20 * DAY)
    ids = [await on.batch(1), await on.batch(0)]
    on.clock.advance(10 * DAY)
    await sweep(on, term)

    assert [(await on.view(batch_id)).state for batch_id in ids] == [BatchState.SEALED, BatchState.CLOSED]


async def test_a_former_leader_sweeps_nothing(on: Scenario) -> None:
    """A sweep under a term after which another began changes nothing."""
    former = await on.term(SECOND)
    on.clock.advance(SECOND)
    current = await on.term()
    batch_id = await on.batch(1)
    await on.work_off(await on.worker(), [S])

    assert await sweep(on, former) == []
    assert (await on.view(batch_id)).state is BatchState.SEALED
    assert [closed.id for closed in await sweep(on, current)] == [batch_id]
