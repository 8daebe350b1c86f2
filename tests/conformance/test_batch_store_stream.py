"""BatchStore.append_slice and seal_batch: batches that are streamed in slices."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from headrace.model.batch import BatchState, NewBatch
from headrace.model.errors import ConflictError, NotFoundError
from headrace.model.job import JobState
from tests.conformance.scenario import ALL, MINUTE, SECOND, SPEC, Scenario, item, part


async def test_slices_become_jobs_as_they_arrive(on: Scenario) -> None:
    """The items of an open batch can be claimed before it is sealed."""
    batch_id = await on.open_batch()
    assert await on.stores.batches.append_slice(part(batch_id, 0, 3)) is True
    assert await on.stores.batches.append_slice(part(batch_id, 3, 2)) is True

    jobs = await on.claim(await on.worker())
    assert {job.ordinal: job.args for job in jobs} == {number: item(number) for number in range(5)}
    assert (await on.view(batch_id)).state is BatchState.OPEN


async def test_a_slice_sent_again_is_a_no_op(on: Scenario) -> None:
    """An equal slice is recognised: the answer is False and no item is added."""
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 3))

    assert await on.stores.batches.append_slice(part(batch_id, 0, 3)) is False
    assert (await on.stores.inspect.batch_progress(batch_id)).waiting == 3


async def test_a_slice_sent_again_is_known_whatever_became_of_it(on: Scenario) -> None:
    """An equal slice is a no-op also when its items have finished and the batch is sealed, closed or cancelling."""
    session, batch_id = await on.worker(), await on.open_batch()
    again = part(batch_id, 0, 2)
    await on.stores.batches.append_slice(again)
    await on.work_off(session, [JobState.SUCCEEDED] * 2)
    assert await on.stores.batches.append_slice(again) is False
    await on.stores.batches.seal_batch(batch_id, total=2)
    assert await on.stores.batches.append_slice(again) is False
    await on.stores.batches.close_batches([batch_id])
    assert await on.stores.batches.append_slice(again) is False

    assert await on.claim(session) == []


async def test_other_contents_at_the_same_place_conflict(on: Scenario) -> None:
    """A slice of ordinals that are taken by other contents raises ConflictError and adds nothing."""
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 3))

    with pytest.raises(ConflictError):
        await on.stores.batches.append_slice(part(batch_id, 0, 3, text='{"other":1}'))
    assert (await on.stores.inspect.batch_progress(batch_id)).waiting == 3


async def test_overlapping_slices_conflict(on: Scenario) -> None:
    """A slice that shares some ordinals with another raises ConflictError: an ordinal is one item."""
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 3))

    for first, count in ((2, 3), (0, 4), (1, 1), (0, 2)):
        with pytest.raises(ConflictError):
            await on.stores.batches.append_slice(part(batch_id, first, count))
    assert (await on.stores.inspect.batch_progress(batch_id)).waiting == 3


async def test_overlapping_slices_behind_a_gap_conflict(on: Scenario) -> None:
    """Also where fewer items were appended than the ordinals reach."""
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 1, 2))

    with pytest.raises(ConflictError):
        await on.stores.batches.append_slice(part(batch_id, 2, 1))
    assert await on.stores.batches.append_slice(part(batch_id, 0, 1)) is True


async def test_slices_over_the_items_of_a_list_conflict(on: Scenario) -> None:
    """The items a batch was made of take their ordinals too: a later round appends after them only."""
    batch_id = await on.batch(3)
    first = await on.stores.batches.reopen_batch(batch_id, key="more")

    for start in range(first):
        with pytest.raises(ConflictError):
            await on.stores.batches.append_slice(part(batch_id, start, 2))
    assert await on.stores.batches.append_slice(part(batch_id, first, 2))
    assert sorted(await on.stores.inspect.batch_args(batch_id)) == [0, 1, 2, 3, 4]


async def test_a_sealed_batch_takes_nothing_more(on: Scenario) -> None:
    """A new slice for a sealed, closed or cancelling batch raises ConflictError."""
    sealed, closed, cancelling = await on.batch(1), await on.batch(0), await on.open_batch()
    await on.stores.batches.cancel_batch(cancelling)

    for batch_id in (sealed, closed, cancelling):
        with pytest.raises(ConflictError):
            await on.stores.batches.append_slice(part(batch_id, 1, 1))
    assert len(await on.stores.inspect.list_jobs()) == 1


async def test_an_unknown_batch_is_not_found(on: Scenario) -> None:
    """Appending to or sealing a batch that does not exist raises NotFoundError."""
    with pytest.raises(NotFoundError):
        await on.stores.batches.append_slice(part(uuid4(), 0, 1))
    with pytest.raises(NotFoundError):
        await on.stores.batches.seal_batch(uuid4(), total=0)


async def test_sealing_fixes_the_total(on: Scenario) -> None:
    """A sealed batch knows its total and when it was sealed."""
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 3))
    on.clock.advance(SECOND)
    await on.stores.batches.seal_batch(batch_id, total=3)

    view = await on.view(batch_id)
    assert (view.state, view.total, view.sealed_at) == (BatchState.SEALED, 3, on.clock.now())


async def test_sealing_with_another_total_is_a_conflict(on: Scenario) -> None:
    """A total that differs from what was appended, or from what was sealed, raises ConflictError."""
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 3))
    for total in (2, 4, 0):
        with pytest.raises(ConflictError):
            await on.stores.batches.seal_batch(batch_id, total=total)
    assert (await on.view(batch_id)).state is BatchState.OPEN
    await on.stores.batches.seal_batch(batch_id, total=3)

    with pytest.raises(ConflictError):
        await on.stores.batches.seal_batch(batch_id, total=4)


async def test_sealing_again_changes_nothing(on: Scenario) -> None:
    """The same total again is accepted, also when the batch is closed by now."""
    batch_id = await on.open_batch()
    await on.stores.batches.seal_batch(batch_id, total=0)
    await on.stores.batches.seal_batch(batch_id, total=0)
    await on.stores.batches.close_batches([batch_id])
    before = await on.view(batch_id)
    await on.stores.batches.seal_batch(batch_id, total=0)

    assert await on.view(batch_id) == before
    assert before.state is BatchState.CLOSED


async def test_an_open_batch_is_not_closed(on: Scenario) -> None:
    """A batch whose items all finished waits for its seal; then it closes, also when it has no items at all."""
    session = await on.worker()
    empty, filled = await on.open_batch(), await on.open_batch()
    await on.stores.batches.append_slice(part(filled, 0, 1))
    await on.work_off(session, [JobState.SUCCEEDED])
    assert await on.stores.batches.close_batches([empty, filled]) == []
    await on.stores.batches.seal_batch(empty, total=0)
    await on.stores.batches.seal_batch(filled, total=1)

    closed = await on.stores.batches.close_batches([empty, filled])
    assert {batch.id for batch in closed} == {empty, filled}


async def test_two_submitters_may_stream_the_same_batch(on: Scenario) -> None:
    """Two submitters that send equal slices at the same moment make every item once and both seal."""
    batch_id = await on.stores.batches.create_batch(NewBatch(SPEC, key="k"), None)

    async def stream() -> list[bool]:
        added = [await on.stores.batches.append_slice(part(batch_id, first, 10)) for first in range(0, 100, 10)]
        await on.stores.batches.seal_batch(batch_id, total=100)
        return added

    first, second = await asyncio.gather(stream(), stream())
    assert [one + other for one, other in zip(first, second, strict=True)] == [1] * 10
    jobs = await on.claim(await on.worker(), ALL)
    assert sorted(job.ordinal or 0 for job in jobs) == list(range(100))


async def test_of_unequal_slices_at_once_one_wins(on: Scenario) -> None:
    """Different contents for the same ordinals at the same moment: one is stored whole, the others conflict."""
    batch_id = await on.open_batch()
    slices = [part(batch_id, 0, 5, text=f'{{"n":{number}}}') for number in range(6)]
    answers = await asyncio.gather(*map(on.stores.batches.append_slice, slices), return_exceptions=True)

    assert sorted(map(str, map(type, answers))) == sorted([str(bool)] + [str(ConflictError)] * 5)
    won = slices[answers.index(True)]
    assert await on.stores.inspect.batch_args(batch_id) == dict(enumerate(won.args))


async def test_a_seal_and_a_late_slice_have_one_winner(on: Scenario) -> None:
    """A slice that races with the seal is in the total, or refused; it never slips in after it."""
    for _ in range(5):
        batch_id = await on.open_batch()
        await on.stores.batches.append_slice(part(batch_id, 0, 2))
        answers = await asyncio.gather(
            on.stores.batches.seal_batch(batch_id, total=2),
            on.stores.batches.append_slice(part(batch_id, 2, 1)),
            return_exceptions=True,
        )
        view, progress = await on.view(batch_id), await on.stores.inspect.batch_progress(batch_id)
        assert sum(isinstance(answer, ConflictError) for answer in answers) == 1
        assert (view.state, progress.waiting) in {(BatchState.SEALED, 2), (BatchState.OPEN, 3)}


async def test_items_of_a_streamed_batch_may_start_later(on: Scenario) -> None:
    """A future `run_at` of the batch holds for the items of its slices."""
    batch_id = await on.open_batch(run_at=on.clock.now() + MINUTE)
    await on.stores.batches.append_slice(part(batch_id, 0, 1))

    [job] = await on.stores.inspect.list_jobs(batch_id=batch_id)
    assert job.state is JobState.SCHEDULED
