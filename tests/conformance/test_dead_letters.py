"""Inspect.dead_letters and ControlStore.retry_jobs: finding what failed, and running it again."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID, uuid4

import pytest

from headrace.engine.dead_letters import count_kinds
from headrace.model.batch import BatchState, Progress
from headrace.model.dead_letter import DeadLetter, DeadLetterFilter
from headrace.model.job import JobError, JobState
from tests.conformance.scenario import ARGS, DAY, MINUTE, SECOND, Scenario, item

S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED
ERROR = JobError("ValueError", "no “page” \\ 7", "a long trace")


async def failed(on: Scenario, count: int = 1, *, state: JobState = F, **spec: str) -> list[UUID]:
    """Let jobs fail, one after another within a second each, and return their ids in that order."""
    session = await on.worker(lease=DAY)
    ids = []
    for _ in range(count):
        _, job = await on.start(session, **spec)
        on.clock.advance(SECOND)
        await on.end(session, job, state=state, error=ERROR, charged=True)
        ids.append(job.id)
    return ids


async def pages(on: Scenario, limit: int, **filters: object) -> list[tuple[DeadLetter, ...]]:
    """Read all pages of dead letters."""
    read, before = [], None
    while True:
        page = await on.stores.inspect.dead_letters(limit=limit, before=before, **filters)  # type: ignore[arg-type]
        assert len(page.letters) <= page.looked_at <= limit
        read.append(page.letters)
        before = page.before
        if before is None:
            return read


async def found(on: Scenario, limit: int = 100, **filters: object) -> list[UUID]:
    """Return the ids of dead letters in their order."""
    return [letter.id for page in await pages(on, limit, **filters) for letter in page]


async def test_a_dead_letter_says_what_failed(on: Scenario) -> None:
    """A failed job is a dead letter with its task, queue, time and error, whose trace stays with the job."""
    [job_id] = await failed(on, task="pay", queue="money")

    [[letter]] = await pages(on, 10)
    assert letter == DeadLetter(job_id, "pay", "money", on.clock.now(), JobError(ERROR.kind, ERROR.message))


async def test_dead_letters_come_newest_first_page_by_page(on: Scenario) -> None:
    """Pages of any size give each dead letter of all queues once, in the order in which they failed."""
    ids = [job_id for queue in ("b", "a", "c", "a") for job_id in await failed(on, 2, queue=queue)]

    for limit in (1, 3, 8, 100):
        assert await found(on, limit) == ids[::-1]


async def test_dead_letters_of_one_instant_are_paged_by_id(on: Scenario) -> None:
    """Jobs that failed at the same time are neither missed nor given twice."""
    session = await on.worker()
    ids = await on.enqueue(5)
    await on.end(session, *await on.claim(session), state=F, error=ERROR)

    assert await found(on, 2) == ids[::-1]


async def test_only_what_failed_and_was_not_retried_is_dead(on: Scenario) -> None:
    """Successes, cancelled jobs, live jobs and retried failures are none; a retry that failed is one."""
    kept, retried = await failed(on, 2)
    await failed(on, state=S)
    await failed(on, state=C)
    session = await on.worker(lease=DAY)
    await on.stores.control.retry_job(retried)
    [copy] = await on.claim(session)
    await on.end(session, copy, state=F, error=ERROR)
    await on.enqueue()

    assert await found(on) == [copy.id, kept]


async def test_a_page_looks_at_a_bounded_number(on: Scenario) -> None:
    """What is left out counts against the limit: a page may be empty though more follow."""
    [old] = await failed(on)
    retried = await failed(on, 4)
    await on.stores.control.retry_jobs(dict.fromkeys(retried))

    page = await on.stores.inspect.dead_letters(limit=2)
    assert (page.letters, page.looked_at) == ((), 2)
    assert page.before is not None
    assert await found(on, 2) == [old]


async def test_dead_letters_are_counted_by_kind(on: Scenario) -> None:
    """Of the newest failed jobs as many as are asked for, and whether that was all."""
    await failed(on)
    retried = await failed(on, 2)
    await on.stores.control.retry_jobs(dict.fromkeys(retried))
    await failed(on, queue="x")

    inspect, every = on.stores.inspect, DeadLetterFilter()
    assert await count_kinds(inspect, every, look=100) == ({ERROR.kind: 2}, True)
    assert await count_kinds(inspect, DeadLetterFilter(queue="x"), look=100) == ({ERROR.kind: 1}, True)
    assert await count_kinds(inspect, DeadLetterFilter(kind="other"), look=100) == ({}, True)
    assert await count_kinds(inspect, every, look=3) == ({ERROR.kind: 1}, False)


async def test_dead_letters_are_filtered(on: Scenario) -> None:
    """Queue, task and age leave only what all of them mean."""
    [old] = await failed(on, task="a", queue="x")
    on.clock.advance(DAY)
    [here] = await failed(on, task="a", queue="x")
    [there] = await failed(on, task="a", queue="y")
    [other] = await failed(on, task="b", queue="x")

    assert await found(on, queue="x") == [other, here, old]
    assert await found(on, task="a") == [there, here, old]
    assert await found(on, within=MINUTE) == [other, there, here]
    assert await found(on, within=MINUTE, task="a", queue="x") == [here]
    assert await found(on, queue="nobody's") == await found(on, task="nobody's") == []


async def test_age_is_inclusive(on: Scenario) -> None:
    """A job that failed exactly as long ago as asked is still meant."""
    [job_id] = await failed(on)
    on.clock.advance(MINUTE)

    assert await found(on, within=MINUTE) == [job_id]
    assert await found(on, within=MINUTE - SECOND) == []


# Retrying several


async def claimed(on: Scenario) -> list[UUID | None]:
    """Claim everything and return which jobs the claimed ones repeat."""
    jobs = await on.claim(await on.worker(lease=DAY))
    return [(await on.job(job.id)).retry_of for job in jobs]


async def test_jobs_are_retried_together(on: Scenario) -> None:
    """Each job gets one new one, claimed in the order asked for, whatever the order of the failures."""
    first, second, third = await failed(on, 3)

    made = await on.stores.control.retry_jobs(dict.fromkeys([third, first, second]))
    assert [(await on.job(new)).retry_of for new in made.values()] == list(made) == [third, first, second]
    assert await claimed(on) == [third, first, second]


async def test_arguments_are_replaced_where_some_are_given(on: Scenario) -> None:
    """A job runs again with the text given for it, or with its own; the failed job keeps what it had."""
    changed, same = await failed(on, 2)
    made = await on.stores.control.retry_jobs({changed: item(7), same: None})

    assert (await on.job(made[changed])).args == {"args": [7], "kwargs": {}}
    assert (await on.job(made[same])).args == (await on.job(changed)).args == {"args": [], "kwargs": {}}
    session = await on.worker()
    assert [job.args for job in await on.claim(session)] == [item(7), ARGS]


async def test_what_cannot_be_retried_is_left_out(on: Scenario) -> None:
    """Unknown, live, successful and retried jobs are passed over, cancelled ones are not."""
    ids: Sequence[UUID] = [*await failed(on), *await failed(on, state=S), *await failed(on, state=C)]
    dead, done, cancelled = ids
    [live] = await on.enqueue()
    [retried] = await failed(on)
    await on.stores.control.retry_job(retried)

    made = await on.stores.control.retry_jobs(dict.fromkeys([uuid4(), live, done, retried, cancelled, dead]))
    assert list(made) == [cancelled, dead]
    assert await on.stores.control.retry_jobs(dict.fromkeys(ids)) == {}
    assert await on.stores.control.retry_jobs({}) == {}


async def test_items_open_one_new_round_of_their_batch(on: Scenario) -> None:
    """Failed items of a closed batch run again in a new round of it, in which their copies take their places."""
    session = await on.worker()
    batch_id = await on.batch(3)
    await on.work_off(session, [F, F, S])
    await on.stores.batches.close_batches([batch_id])
    last, first = await found(on)
    on.clock.advance(SECOND)

    assert len(await on.stores.control.retry_jobs({last: item(9), first: None})) == 2
    view = await on.view(batch_id)
    assert (view.state, view.round) == (BatchState.SEALED, 2)
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=3, succeeded=1, waiting=2)
    assert await on.stores.inspect.batch_args(batch_id) == {0: item(0), 1: item(9), 2: item(2)}
    await on.work_off(session, [S, S])
    assert await on.stores.inspect.batch_args(batch_id) == {0: item(0), 1: item(9), 2: item(2)}
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=3, succeeded=3)


async def test_items_of_a_batch_being_cancelled_stay(on: Scenario) -> None:
    """A batch that is being cancelled gets no new jobs; the others asked for are retried."""
    session = await on.worker()
    batch_id = await on.batch(2)
    [job] = await on.work_off(session, [F])
    [single] = await failed(on, queue="other")
    await on.stores.batches.cancel_batch(batch_id)

    assert list(await on.stores.control.retry_jobs(dict.fromkeys([job.id, single]))) == [single]


@pytest.mark.parametrize("count", [1_000])
async def test_many_jobs_are_retried_in_one_step(on: Scenario, count: int) -> None:
    """A thousand jobs are retried at once, each once."""
    session = await on.worker()
    ids = await on.enqueue(count)
    await on.end(session, *await on.claim(session), state=F, error=ERROR)

    made = await on.stores.control.retry_jobs(dict.fromkeys(ids))
    assert (len(made), len(set(made.values()))) == (count, count)
    assert await found(on, 500) == []


async def test_the_newest_try_of_an_item_is_told_whatever_the_clock_says(on: Scenario) -> None:
    """Items that fail and are retried within one instant have the arguments of their last retry, again and again."""
    session, batch_id = await on.worker(), await on.batch(3)
    for number in range(10, 14):
        [first, *_] = await on.work_off(session, [JobState.FAILED] * 3)
        assert len(await on.stores.control.retry_jobs({job: item(number) for job in [first.id]})) == 1
        others = [job.id for job in await on.stores.inspect.list_jobs(state=JobState.FAILED, batch_id=batch_id)]
        await on.stores.control.retry_jobs(dict.fromkeys(others, item(number)))
        assert set((await on.stores.inspect.batch_args(batch_id)).values()) == {item(number)}
