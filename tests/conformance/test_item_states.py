"""Inspect.batch_states and batch_dead_letters: what each item of a batch is, and which items failed."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest

from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.model.item_states import BatchStates
from headrace.model.job import ClaimedJob, JobError, JobState, Park
from headrace.model.stats import Retention
from tests.conformance.scenario import ALL, DAY, MINUTE, SECOND, Scenario, part

S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED
ERROR = JobError("ValueError", 'no "trace": \\ in ,"trace":"x",', "a long trace")


async def letters(on: Scenario, batch_id: UUID, first: int = 0, limit: int = ALL) -> str:
    """Return the letters of a batch."""
    return (await on.stores.inspect.batch_states(batch_id, first=first, limit=limit)).letters


async def test_each_state_has_its_letter(on: Scenario) -> None:
    """Every item shows where it is."""
    session = await on.worker(lease=DAY)
    batch_id = await on.batch(7)
    jobs = await on.claim(session, 6)
    for job, state in zip(jobs, (S, F, C), strict=False):
        await on.end(session, job, state=state)
    await on.end(session, jobs[4], state=JobState.SCHEDULED, delay=MINUTE)
    await on.end(session, jobs[5], state=JobState.PARKED, park=Park("k"))

    assert await on.stores.inspect.batch_states(batch_id, first=0, limit=ALL) == BatchStates(0, "ofcrspw", 7)


async def test_a_batch_that_is_run_later_is_scheduled(on: Scenario) -> None:
    """Items that wait for their time are scheduled."""
    assert await letters(on, await on.batch(2, run_at=on.clock.now() + MINUTE)) == "ss"


@pytest.mark.parametrize(
    ("first", "limit", "shown"), [(0, 3, "ofw"), (1, 3, "fww"), (3, ALL, "ww"), (5, 10, ""), (900, 10, "")]
)
async def test_a_part_of_the_items_is_read(on: Scenario, first: int, limit: int, shown: str) -> None:
    """Only the items asked for are there, and the end of all is told; another batch is another one's."""
    session = await on.worker()
    batch_id = await on.batch(5)
    await on.work_off(session, [S, F])
    await on.batch(5)
    read = await on.stores.inspect.batch_states(batch_id, first=first, limit=limit)
    assert read == BatchStates(first, shown, 5)


async def test_what_is_not_appended_is_not_there(on: Scenario) -> None:
    """Gaps between slices are no items, an empty batch has none, and the last item that came ends the letters."""
    batch_id = await on.open_batch()
    assert await on.stores.inspect.batch_states(batch_id, first=0, limit=ALL) == BatchStates(0, "", 0)
    await on.stores.batches.append_slice(part(batch_id, 4, 2))
    assert await letters(on, batch_id) == "....ww"
    on.clock.advance(SECOND)
    await on.stores.batches.append_slice(part(batch_id, 1, 2))
    await on.work_off(await on.worker(), [S] * 3)
    assert await letters(on, batch_id) == ".ow.oo"
    assert await letters(on, batch_id, first=3, limit=2) == ".o"


async def try_again(on: Scenario, session: UUID, outcomes: Sequence[JobState]) -> tuple[UUID, list[ClaimedJob]]:
    """Let the items of a batch end as told, and claim the retries of those that failed."""
    batch_id = await on.batch(len(outcomes))
    await on.work_off(session, outcomes)
    await on.stores.batches.close_batches([batch_id])
    assert await on.stores.batches.retry_failed(batch_id) == outcomes.count(F)
    assert await letters(on, batch_id) == "".join({S: "o", F: "w", C: "c"}[state] for state in outcomes)
    return batch_id, await on.claim(session)


async def test_a_retried_item_is_what_its_newest_try_is(on: Scenario) -> None:
    """A retry hides what it repeats while it waits and runs and when it has ended, however often that comes."""
    session = await on.worker(lease=DAY)
    batch_id, tries = await try_again(on, session, [F, S, F, F, F, C])
    for job, state in zip(tries, (S, F, C), strict=False):
        await on.end(session, job, state=state)
    assert await letters(on, batch_id) == "oofcrc"
    await on.end(session, tries[3], state=F)
    await on.stores.batches.close_batches([batch_id])
    assert await on.stores.batches.retry_failed(batch_id) == 2
    assert await letters(on, batch_id) == "oowcwc"
    await on.work_off(session, [S, F])
    assert await letters(on, batch_id) == "ooocfc"


async def test_an_item_that_is_retried_before_its_batch_is_closed_waits(on: Scenario) -> None:
    """Within its round a failed item that is run again waits like the others, and can fail again."""
    session = await on.worker(lease=DAY)
    batch_id = await on.batch(3)
    [job] = await on.work_off(session, [F])
    await on.stores.control.retry_job(job.id)
    assert await letters(on, batch_id) == "www"
    claimed = await on.claim(session)
    assert await letters(on, batch_id) == "rrr"
    await on.end(session, *claimed, state=F)
    assert await letters(on, batch_id) == "fff"


async def test_a_cancelled_batch_shows_what_ran(on: Scenario) -> None:
    """What had not run is cancelled, what runs is asked to stop and still runs."""
    session = await on.worker()
    batch_id = await on.batch(4)
    await on.work_off(session, [S])
    await on.claim(session, 1)
    await on.stores.batches.cancel_batch(batch_id)
    await on.stores.batches.settle_cancelled(batch_id, limit=ALL)
    assert await letters(on, batch_id) == "orcc"


async def test_a_new_round_shows_all_items(on: Scenario) -> None:
    """Items of further rounds stand behind those of the first."""
    session = await on.worker()
    batch_id = await on.batch(2)
    await on.work_off(session, [S, F])
    await on.stores.batches.close_batches([batch_id])
    await on.stores.batches.reopen_batch(batch_id, key="more")
    await on.stores.batches.append_slice(part(batch_id, 2, 3))
    assert await letters(on, batch_id) == "ofwww"


async def test_an_item_that_was_pruned_is_not_there(on: Scenario) -> None:
    """What its retention has removed does not seem to wait, also when what is left runs again."""
    session = await on.worker(lease=DAY)
    batch_id = await on.batch(3)
    await on.work_off(session, [S, F, S])
    await on.stores.batches.close_batches([batch_id])
    on.clock.advance(2 * DAY)
    kept = Retention(succeeded=DAY, failed=9 * DAY, cancelled=9 * DAY)
    await on.stores.jobs.prune_jobs(kept, limit=ALL)
    assert await on.stores.inspect.batch_states(batch_id, first=0, limit=ALL) == BatchStates(0, ".f.", 3)
    await on.stores.batches.retry_failed(batch_id)
    assert await letters(on, batch_id) == ".w."


@pytest.mark.parametrize(
    "wrong", [{"first": -1}, {"first": 2**31}, {"limit": 0}, {"limit": 10_001}, {"first": True}, {"limit": 1.0}]
)
async def test_a_range_that_none_can_be_is_refused(on: Scenario, wrong: dict[str, int]) -> None:
    """Bounds are named in the error."""
    batch_id = await on.batch(1)
    with pytest.raises(InvalidInputError, match=next(iter(wrong))):
        await on.stores.inspect.batch_states(batch_id, **{"first": 0, "limit": 1} | wrong)


async def test_a_batch_that_is_not_there_has_no_items(on: Scenario) -> None:
    """An unknown batch is an error, not an empty answer."""
    with pytest.raises(NotFoundError):
        await on.stores.inspect.batch_states(uuid4(), first=0, limit=1)
    with pytest.raises(NotFoundError):
        await on.stores.inspect.batch_dead_letters(uuid4(), limit=1)


async def test_the_tries_of_an_item_come_newest_first(on: Scenario) -> None:
    """Those of one item of one batch, live or ended, each with what it is; another item has its own."""
    session = await on.worker(lease=DAY)
    batch_id = await on.batch(3)
    await on.work_off(session, [S, F, S])
    await on.stores.batches.close_batches([batch_id])
    on.clock.advance(SECOND)
    await on.stores.batches.retry_failed(batch_id)
    tries = await on.claim(session)
    await on.batch(3)
    found = await on.stores.inspect.item_jobs(batch_id, 1, limit=ALL)
    assert [(job.state, job.ordinal, job.batch_id) for job in found] == [
        (JobState.RUNNING, 1, batch_id),
        (F, 1, batch_id),
    ]
    assert found[0].id == tries[0].id and found[0].retry_of == found[1].id
    assert [job.id for job in await on.stores.inspect.item_jobs(batch_id, 1, limit=1)] == [found[0].id]
    await on.end(session, tries[0], state=S)
    found = await on.stores.inspect.item_jobs(batch_id, 1, limit=ALL)
    assert [job.state for job in found] == [S, F]
    assert [job.state for job in await on.stores.inspect.item_jobs(batch_id, 0, limit=ALL)] == [S]
    assert await on.stores.inspect.item_jobs(batch_id, 3, limit=ALL) == []
    assert await on.stores.inspect.item_jobs(uuid4(), 0, limit=ALL) == []


# Failures


async def test_failed_items_come_newest_first(on: Scenario) -> None:
    """Of all items those that failed are there, with task, time and error but for its trace."""
    session = await on.worker(lease=DAY)
    batch_id = await on.batch(4)
    failed = []
    for job, state in zip(await on.claim(session, 4), (F, S, F, C), strict=True):
        on.clock.advance(SECOND)
        await on.end(session, job, state=state, error=None if state is S else ERROR)
        failed += [(job.id, on.clock.now())] if state is F else []
    other = await on.batch(1)
    await on.work_off(session, [F])

    found = await on.stores.inspect.batch_dead_letters(batch_id, limit=ALL)
    assert [(letter.id, letter.finished_at) for letter in found] == failed[::-1]
    assert {(letter.task, letter.queue, letter.batch_id) for letter in found} == {("work", "default", batch_id)}
    assert {letter.error for letter in found} == {JobError(ERROR.kind, ERROR.message)}
    assert len(await on.stores.inspect.batch_dead_letters(batch_id, limit=1)) == 1
    assert len(await on.stores.inspect.batch_dead_letters(other, limit=ALL)) == 1
    assert await on.stores.inspect.batch_dead_letters(await on.batch(1), limit=ALL) == []


async def test_an_item_that_is_run_again_has_not_failed(on: Scenario) -> None:
    """A retried item is no failure while its retry waits, and after that ended as its retry did."""
    session = await on.worker(lease=DAY)
    batch_id, tries = await try_again(on, session, [F, F])
    assert await on.stores.inspect.batch_dead_letters(batch_id, limit=ALL) == []
    assert [item.retried for item in await on.read_all(batch_id)] == [True, True]
    await on.end(session, tries[0], state=S)
    await on.end(session, tries[1], state=F, error=ERROR)
    assert [letter.id for letter in await on.stores.inspect.batch_dead_letters(batch_id, limit=ALL)] == [tries[1].id]
    assert {item.job_id for item in await on.read_all(batch_id) if not item.retried} == {job.id for job in tries}
