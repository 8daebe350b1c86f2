"""BatchStore.reopen_batch and retry_failed: further rounds of a batch."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.model.batch import BatchOutcome, BatchState, ClosePolicy, Progress
from headrace.model.errors import ConflictError, NotFoundError
from headrace.model.job import JobSpec, JobState
from headrace.model.limits import Gate
from headrace.model.stats import Retention
from tests.conformance.scenario import ALL, DAY, SECOND, SPEC, Scenario, item, part

S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED
REPORT = JobSpec("report", "reports")


async def closed_batch(on: Scenario, session: UUID, outcomes: list[JobState], **facts: Any) -> UUID:
    """Run a batch to its close, each item (by claim order) to its outcome."""
    batch_id = await on.batch(len(outcomes), **facts)
    await on.work_off(session, outcomes)
    assert len(await on.stores.batches.close_batches([batch_id])) == 1
    return batch_id


# More items


async def test_a_closed_batch_can_be_continued(on: Scenario) -> None:
    """A new round appends after the last ordinal, is sealed with the new total, and closes with everything."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [S, F], on_close=REPORT)

    assert await on.stores.batches.reopen_batch(batch_id, key="more") == 2
    view = await on.view(batch_id)
    assert (view.state, view.round, view.outcome, view.closed_at) == (BatchState.OPEN, 2, None, None)
    await on.stores.batches.append_slice(part(batch_id, 2, 3))
    await on.stores.batches.seal_batch(batch_id, total=5)
    await on.work_off(session, [S] * 3)
    [closed] = await on.stores.batches.close_batches([batch_id])
    assert closed.outcome is BatchOutcome.PARTIAL
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=5, succeeded=4, failed=1)
    assert len(await on.claim(session, queue="reports")) == 2


async def test_a_round_is_known_by_its_key(on: Scenario) -> None:
    """The same key again returns the same ordinal, while the round is open, sealed or closed, and opens nothing."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [S])
    reopen = on.stores.batches.reopen_batch

    assert await reopen(batch_id, key="more") == 1
    await on.stores.batches.append_slice(part(batch_id, 1, 2))
    assert await reopen(batch_id, key="more") == 1
    await on.stores.batches.seal_batch(batch_id, total=3)
    assert await reopen(batch_id, key="more") == 1
    await on.work_off(session, [S, S])
    await on.stores.batches.close_batches([batch_id])
    assert await reopen(batch_id, key="more") == 1
    view = await on.view(batch_id)
    assert (view.state, view.round) == (BatchState.CLOSED, 2)


async def test_another_key_opens_another_round(on: Scenario) -> None:
    """After one round is sealed and closed another key opens the next one behind it."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [S])
    for round_, key in ((2, "second"), (3, "third")):
        first = await on.stores.batches.reopen_batch(batch_id, key=key)
        assert first == round_ - 1
        await on.stores.batches.append_slice(part(batch_id, first, 1))
        await on.stores.batches.seal_batch(batch_id, total=first + 1)
        await on.work_off(session, [S])
        await on.stores.batches.close_batches([batch_id])
        assert (await on.view(batch_id)).round == round_


async def test_a_round_without_items_closes_again(on: Scenario) -> None:
    """A round that adds nothing is sealed with the old total and closes with the old outcome."""
    batch_id = await closed_batch(on, await on.worker(), [S, F])
    await on.stores.batches.reopen_batch(batch_id, key="more")
    await on.stores.batches.seal_batch(batch_id, total=2)

    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.PARTIAL]


async def test_a_running_batch_takes_more_items(on: Scenario) -> None:
    """A sealed batch whose items still run can be continued; it closes when old and new items are done."""
    session = await on.worker()
    batch_id = await on.batch(1)
    assert await on.stores.batches.reopen_batch(batch_id, key="more") == 1
    await on.stores.batches.append_slice(part(batch_id, 1, 1))
    await on.stores.batches.seal_batch(batch_id, total=2)
    await on.work_off(session, [S])
    assert await on.stores.batches.close_batches([batch_id]) == []
    await on.work_off(session, [S])

    assert len(await on.stores.batches.close_batches([batch_id])) == 1


async def test_an_open_round_keeps_others_out(on: Scenario) -> None:
    """While a round is open, the first one included, another key raises ConflictError."""
    first = await on.open_batch()
    second = await closed_batch(on, await on.worker(), [S])
    await on.stores.batches.reopen_batch(second, key="more")

    for batch_id in (first, second):
        with pytest.raises(ConflictError):
            await on.stores.batches.reopen_batch(batch_id, key="other")


async def test_a_batch_being_cancelled_opens_no_round(on: Scenario) -> None:
    """Reopening a batch that is being cancelled raises ConflictError."""
    batch_id = await on.batch(1)
    await on.stores.batches.cancel_batch(batch_id)

    with pytest.raises(ConflictError):
        await on.stores.batches.reopen_batch(batch_id, key="more")


async def test_slices_of_former_rounds_are_still_known(on: Scenario) -> None:
    """A submitter that starts from the first ordinal again adds only what is new."""
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 2))
    await on.stores.batches.seal_batch(batch_id, total=2)
    await on.stores.batches.reopen_batch(batch_id, key="more")

    assert await on.stores.batches.append_slice(part(batch_id, 0, 2)) is False
    assert await on.stores.batches.append_slice(part(batch_id, 2, 1)) is True


async def test_concurrent_openings_of_a_round_agree(on: Scenario) -> None:
    """Several submitters with one key open one round; of several keys one wins and the others conflict."""
    batch_id = await closed_batch(on, await on.worker(), [S])
    answers = await asyncio.gather(*(on.stores.batches.reopen_batch(batch_id, key="more") for _ in range(6)))
    assert answers == [1] * 6
    assert (await on.view(batch_id)).round == 2
    await on.stores.batches.seal_batch(batch_id, total=1)
    await on.stores.batches.close_batches([batch_id])

    keys = [f"key-{number}" for number in range(6)]
    calls = (on.stores.batches.reopen_batch(batch_id, key=key) for key in keys)
    raced = await asyncio.gather(*calls, return_exceptions=True)
    assert sum(isinstance(answer, ConflictError) for answer in raced) == 5
    assert (await on.view(batch_id)).round == 3


# Failed items


async def test_failed_items_run_again_in_a_new_round(on: Scenario) -> None:
    """Copies of the failed items, and of no others, are ready with fresh attempts; the batch is sealed again."""
    session = await on.worker()
    batch_id = await on.batch(4)
    jobs = await on.work_off(session, [S, F, C, F])
    failed = {job.ordinal: job.id for job in (jobs[1], jobs[3])}
    await on.stores.batches.close_batches([batch_id])

    assert await on.stores.batches.retry_failed(batch_id) == 2
    view = await on.view(batch_id)
    assert (view.state, view.round, view.total, view.outcome) == (BatchState.SEALED, 2, 4, None)
    again = await on.claim(session)
    assert {job.ordinal for job in again} == set(failed)
    for job in again:
        assert job.ordinal is not None
        assert (job.attempt, job.failures, job.args) == (1, 0, item(job.ordinal))
        assert (await on.job(job.id)).retry_of == failed[job.ordinal]


async def test_failed_items_are_retried_in_their_order(on: Scenario) -> None:
    """Retries are claimed by ordinal, in whatever order the items failed."""
    session = await on.worker()
    batch_id = await on.batch(5)
    jobs = await on.claim(session)
    for job in (jobs[3], jobs[0], jobs[4], jobs[2], jobs[1]):
        await on.end(session, job, state=F)
    await on.stores.batches.close_batches([batch_id])

    assert await on.stores.batches.retry_failed(batch_id) == 5
    assert [job.ordinal for job in await on.claim(session)] == [0, 1, 2, 3, 4]


async def test_a_retried_item_counts_once(on: Scenario) -> None:
    """Progress counts a retried item by its retry alone, in every state, and never more than the total."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [S, F, F])
    await on.stores.batches.retry_failed(batch_id)
    progress = on.stores.inspect.batch_progress
    assert await progress(batch_id) == Progress(total=3, succeeded=1, waiting=2)
    jobs = await on.claim(session)
    assert await progress(batch_id) == Progress(total=3, succeeded=1, running=2)
    await on.end(session, jobs[0])
    await on.end(session, jobs[1], state=F)

    assert await progress(batch_id) == Progress(total=3, succeeded=2, failed=1)


async def test_a_successful_retry_heals_its_batch(on: Scenario) -> None:
    """A batch whose failures all succeeded when retried closes as succeeded, with its callback once more."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [S, F], on_close=REPORT)
    await on.stores.batches.retry_failed(batch_id)
    await on.work_off(session, [S])

    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.SUCCEEDED]
    assert len(await on.claim(session, queue="reports")) == 2


async def test_the_former_row_stays_as_it_was(on: Scenario) -> None:
    """A retry is a job of its own: the failed one keeps its error and its attempts."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [F])
    [old] = await on.read_all(batch_id)
    before = await on.job(old.job_id)
    await on.stores.batches.retry_failed(batch_id)
    await on.work_off(session, [S])

    assert await on.job(old.job_id) == before


async def test_an_item_may_be_retried_round_after_round(on: Scenario) -> None:
    """What failed again is retried again, each time from the latest failure."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [F, S])
    for round_ in (2, 3, 4):
        assert await on.stores.batches.retry_failed(batch_id) == 1
        await on.work_off(session, [F])
        assert len(await on.stores.batches.close_batches([batch_id])) == 1
        assert (await on.view(batch_id)).round == round_

    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=2, succeeded=1, failed=1)


async def test_without_failures_nothing_changes(on: Scenario) -> None:
    """Retrying a batch that has no failed items answers 0 and opens no round."""
    batch_id = await closed_batch(on, await on.worker(), [S, C])
    before = await on.view(batch_id)

    assert await on.stores.batches.retry_failed(batch_id) == 0
    assert await on.view(batch_id) == before


async def test_only_a_closed_batch_is_retried(on: Scenario) -> None:
    """Retrying an open, running or cancelling batch raises ConflictError."""
    opened, running, cancelling = await on.open_batch(), await on.batch(1), await on.batch(1)
    await on.stores.batches.cancel_batch(cancelling)

    for batch_id in (opened, running, cancelling):
        with pytest.raises(ConflictError):
            await on.stores.batches.retry_failed(batch_id)


async def test_concurrent_retries_open_one_round(on: Scenario) -> None:
    """Of several retries at the same moment one opens the round; the failed items run once."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [F, F, S])
    calls = (on.stores.batches.retry_failed(batch_id) for _ in range(6))
    answers = await asyncio.gather(*calls, return_exceptions=True)

    assert [answer for answer in answers if not isinstance(answer, ConflictError)] == [2]
    assert (await on.view(batch_id)).round == 2
    assert len(await on.claim(session, ALL)) == 2


async def test_a_policy_judges_each_round_by_what_stands(on: Scenario) -> None:
    """A retried failure no longer counts against the policy; a new one does."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [F], policy=ClosePolicy.fail_fast())
    await on.stores.batches.retry_failed(batch_id)
    assert await on.stores.batches.close_batches([batch_id]) == []
    assert (await on.view(batch_id)).state is BatchState.SEALED
    await on.work_off(session, [F])

    assert [closed.outcome for closed in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.FAILED]


async def extend(on: Scenario, batch_id: UUID, key: str, count: int) -> int:
    """Append items in a round named `key`, as a submitter does that may have done so before; return how many came."""
    first = await on.stores.batches.reopen_batch(batch_id, key=key)
    slices = [part(batch_id, first + offset, 1) for offset in range(count)]
    added = [await on.stores.batches.append_slice(one) for one in slices]
    await on.stores.batches.seal_batch(batch_id, total=first + count, key=key)
    return sum(added)


async def end_all(on: Scenario, session: UUID, batch_id: UUID) -> None:
    """Run what waits, and close the batch."""
    await on.end(session, *await on.claim(session))
    await on.stores.batches.close_batches([batch_id])


async def test_a_round_is_known_after_later_rounds(on: Scenario) -> None:
    """Extending again under a former key adds nothing: after a retry, after another round, sealed or closed."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [F])
    assert await extend(on, batch_id, "k", 2) == 2
    assert await extend(on, batch_id, "k", 2) == 0
    await end_all(on, session, batch_id)
    await on.stores.batches.retry_failed(batch_id)
    assert await extend(on, batch_id, "k", 2) == 0
    await end_all(on, session, batch_id)
    assert await extend(on, batch_id, "other", 1) == 1
    assert await extend(on, batch_id, "k", 2) == 0
    await end_all(on, session, batch_id)

    assert await extend(on, batch_id, "k", 2) == 0
    view = await on.view(batch_id)
    assert (view.state, view.round, view.total) == (BatchState.CLOSED, 4, 4)
    assert (await on.stores.inspect.batch_progress(batch_id)).succeeded == 4


async def test_sealing_a_former_round_leaves_the_open_one_alone(on: Scenario) -> None:
    """A round that is open and empty begins where the former one ended: sealing that one again does not seal it."""
    session = await on.worker()
    batch_id = await closed_batch(on, session, [S])
    await extend(on, batch_id, "k", 2)
    await on.stores.batches.reopen_batch(batch_id, key="open")
    assert await extend(on, batch_id, "k", 2) == 0
    assert (await on.view(batch_id)).state is BatchState.OPEN
    await on.stores.batches.append_slice(part(batch_id, 3, 1))
    await on.stores.batches.seal_batch(batch_id, total=1)
    for total in (2, 4):
        with pytest.raises(ConflictError):
            await on.stores.batches.seal_batch(batch_id, total=total, key="k")

    assert (await on.view(batch_id)).state is BatchState.OPEN
    await on.stores.batches.seal_batch(batch_id, total=4, key="open")
    assert (await on.view(batch_id)).total == 4


async def test_the_names_of_rounds_go_with_their_batch(on: Scenario) -> None:
    """Batches have rounds of the same name apart from one another, and pruning one leaves the other's."""
    session = await on.worker()
    first = await closed_batch(on, session, [S])
    await extend(on, first, "k", 1)
    await end_all(on, session, first)
    on.clock.advance(8 * DAY)
    second = await on.batch(0)
    assert await extend(on, second, "k", 0) == 0
    for _ in range(2):
        await on.stores.jobs.prune_jobs(Retention(), limit=10)

    assert await on.stores.inspect.get_batch(first) is None
    assert await on.stores.batches.reopen_batch(second, key="k") == 0
    assert (await on.view(second)).round == 2


async def test_a_copy_keeps_its_specification(on: Scenario) -> None:
    """A retried item has the queue, priority, attempts and gate of the first."""
    session = await on.worker()
    spec = replace(SPEC, queue="mail", priority=3, max_attempts=9, gate=Gate(caps=("task:llm",)))
    batch_id = await on.batch(1, spec=spec)
    [job] = await on.admit(session, queue="mail")
    await on.end(session, job, state=F)
    await on.stores.batches.close_batches([batch_id])
    on.clock.advance(SECOND)
    await on.stores.batches.retry_failed(batch_id)

    assert await on.claim(session, queue="mail") == []
    [again] = await on.admit(session, queue="mail")
    view = await on.job(again.id)
    assert (view.priority, view.max_attempts, view.created_at) == (3, 9, on.clock.now())


async def test_an_unknown_batch_is_not_found(on: Scenario) -> None:
    """Reopening or retrying a batch that does not exist raises NotFoundError."""
    with pytest.raises(NotFoundError):
        await on.stores.batches.reopen_batch(uuid4(), key="more")
    with pytest.raises(NotFoundError):
        await on.stores.batches.retry_failed(uuid4())
