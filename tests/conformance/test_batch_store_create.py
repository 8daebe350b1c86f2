"""BatchStore.create_batch: scatter in one transaction, once per key."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from headrace.model.batch import BatchOutcome, BatchState, ClosePolicy, NewBatch, Progress
from headrace.model.errors import ConflictError
from headrace.model.job import JobSpec, JobState
from headrace.model.limits import Declared, Gate
from tests.conformance.scenario import ALL, MINUTE, SPEC, Scenario, item, items


def keyed(body: str = "body", task: str = "work") -> NewBatch:
    """Return a new batch under a key."""
    return NewBatch(JobSpec(task), key="k", body_hash=body)


async def test_a_list_becomes_a_sealed_batch_of_jobs(on: Scenario) -> None:
    """A batch of a list is sealed at once, each item a ready job with its ordinal and arguments."""
    batch_id = await on.batch(3)

    view = await on.view(batch_id)
    assert (view.state, view.total, view.round, view.outcome) == (BatchState.SEALED, 3, 1, None)
    assert (view.created_at, view.sealed_at, view.closed_at) == (on.clock.now(), on.clock.now(), None)
    jobs = await on.claim(await on.worker())
    assert {job.ordinal: job.args for job in jobs} == {number: item(number) for number in range(3)}
    assert {job.batch_id for job in jobs} == {batch_id}


async def test_a_batch_keeps_what_it_was_made_of(on: Scenario) -> None:
    """Task, queue, key and policy of a batch can be read; its jobs have its specification."""
    spec = JobSpec("mail.send", "mail", priority=7, max_attempts=2)
    new = NewBatch(spec, key="k", policy=ClosePolicy.threshold(3))
    await on.stores.batches.create_batch(new, items(1))

    view = await on.view(new.id)
    assert (view.task, view.queue, view.key, view.policy) == ("mail.send", "mail", "k", ClosePolicy(3))
    [job] = await on.stores.inspect.list_jobs(batch_id=new.id)
    assert (job.task, job.queue, job.priority, job.max_attempts) == ("mail.send", "mail", 7, 2)


async def test_a_batch_without_a_list_stays_open(on: Scenario) -> None:
    """Without items a batch is open and has no total yet."""
    batch_id = await on.open_batch()

    view = await on.view(batch_id)
    assert (view.state, view.total, view.sealed_at) == (BatchState.OPEN, None, None)
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=None)


async def test_an_empty_list_closes_at_once(on: Scenario) -> None:
    """A batch of nothing is closed as succeeded, complete to the percent, and its callback is enqueued."""
    batch_id = await on.batch(0, on_close=JobSpec("report", "reports"))

    view = await on.view(batch_id)
    progress = await on.stores.inspect.batch_progress(batch_id)
    assert (view.state, view.outcome, view.total) == (BatchState.CLOSED, BatchOutcome.SUCCEEDED, 0)
    assert (progress.done, progress.percent) == (0, 100)
    [callback] = await on.claim(await on.worker(), queue="reports")
    assert callback.args == f'{{"args":["{batch_id}"],"kwargs":{{}}}}'


async def test_an_empty_list_under_a_known_key_closes_nothing(on: Scenario) -> None:
    """Whoever submits a batch again only learns its id, also where the one that is there waits to be closed."""
    batch_id = await on.open_batch(key="k", on_close=JobSpec("report", "reports"))
    await on.stores.batches.seal_batch(batch_id, total=0)

    assert await on.batch(0, key="k") == batch_id
    assert (await on.view(batch_id)).state is BatchState.SEALED
    assert len(await on.stores.batches.close_batches([batch_id])) == 1


async def test_items_may_start_later(on: Scenario) -> None:
    """A batch with a future `run_at` schedules its items for then."""
    run_at = on.clock.now() + MINUTE
    batch_id = await on.batch(2, run_at=run_at)

    jobs = await on.stores.inspect.list_jobs(batch_id=batch_id)
    assert [(job.state, job.run_at) for job in jobs] == [(JobState.SCHEDULED, run_at)] * 2


async def test_the_same_key_and_body_give_the_same_batch(on: Scenario) -> None:
    """A second submit under a key creates nothing and returns the first batch."""
    first = keyed()
    await on.stores.batches.create_batch(first, items(3))

    assert await on.stores.batches.create_batch(keyed(), items(3)) == first.id
    assert len(await on.stores.inspect.list_jobs()) == 3
    assert len(await on.stores.inspect.list_batches()) == 1


async def test_the_same_key_with_another_body_is_a_conflict(on: Scenario) -> None:
    """A known key with another body raises ConflictError and changes nothing."""
    await on.stores.batches.create_batch(keyed(), items(3))

    with pytest.raises(ConflictError):
        await on.stores.batches.create_batch(keyed("other"), items(4))
    assert len(await on.stores.inspect.list_jobs()) == 3
    assert len(await on.stores.inspect.list_batches()) == 1


async def test_a_key_still_answers_when_its_batch_is_closed(on: Scenario) -> None:
    """Submitting a finished batch again returns it and runs nothing."""
    new = keyed()
    session = await on.worker()
    await on.stores.batches.create_batch(new, items(1))
    await on.work_off(session, [JobState.SUCCEEDED])
    await on.stores.batches.close_batches([new.id])

    assert await on.stores.batches.create_batch(keyed(), items(1)) == new.id
    assert await on.claim(session) == []


async def test_keys_belong_to_their_task(on: Scenario) -> None:
    """Two tasks may use the same key for different batches."""
    first, second = keyed(task="left"), keyed("other", task="right")

    assert await on.stores.batches.create_batch(first, items(1)) == first.id
    assert await on.stores.batches.create_batch(second, items(1)) == second.id


async def test_a_lost_answer_makes_no_second_batch(on: Scenario) -> None:
    """The same batch created again after its answer was lost is recognised, keyed or not, open or with its items."""
    for new in (NewBatch(SPEC), keyed()):
        assert await on.stores.batches.create_batch(new, items(2)) == new.id
        assert await on.stores.batches.create_batch(new, items(2)) == new.id
    streamed = NewBatch(SPEC)
    for _ in range(2):
        assert await on.stores.batches.create_batch(streamed, None) == streamed.id

    assert len(await on.stores.inspect.list_jobs()) == 4
    assert len(await on.stores.inspect.list_batches()) == 3


async def test_a_lost_answer_makes_no_second_run(on: Scenario) -> None:
    """A batch created again when its items have already finished runs nothing again."""
    new, session = NewBatch(SPEC), await on.worker()
    await on.stores.batches.create_batch(new, items(2))
    await on.work_off(session, [JobState.SUCCEEDED] * 2)
    await on.stores.batches.create_batch(new, items(2))

    assert await on.claim(session) == []
    assert len(await on.read_all(new.id)) == 2


async def test_a_lost_answer_makes_no_second_callback(on: Scenario) -> None:
    """An empty batch created again enqueues its callback once."""
    new = NewBatch(SPEC, on_close=JobSpec("report"))
    for _ in range(2):
        await on.stores.batches.create_batch(new, [])

    assert len(await on.stores.inspect.list_jobs()) == 1


async def test_concurrent_equal_submits_make_one_batch(on: Scenario) -> None:
    """Ten submits of one key at the same moment all return one batch, with its items once."""
    submits = (on.stores.batches.create_batch(keyed(), items(20)) for _ in range(10))
    answers = await asyncio.gather(*submits)

    [batch] = await on.stores.inspect.list_batches()
    assert set(answers) == {batch.id}
    assert len(await on.stores.inspect.list_jobs(limit=ALL)) == 20


async def test_concurrent_equal_openings_make_one_batch(on: Scenario) -> None:
    """Two submitters that begin to stream the same batch get one batch to stream into."""
    submits = (on.stores.batches.create_batch(keyed(), None) for _ in range(10))
    answers = await asyncio.gather(*submits)

    [batch] = await on.stores.inspect.list_batches()
    assert set(answers) == {batch.id}
    assert batch.state is BatchState.OPEN


async def test_concurrent_unequal_submits_have_one_winner(on: Scenario) -> None:
    """Of submits of one key with different bodies exactly one makes a batch; the others conflict."""
    submits = (on.stores.batches.create_batch(keyed(str(number)), items(2)) for number in range(8))
    answers = await asyncio.gather(*submits, return_exceptions=True)

    [batch] = await on.stores.inspect.list_batches()
    assert [answer for answer in answers if not isinstance(answer, BaseException)] == [batch.id]
    assert sum(isinstance(answer, ConflictError) for answer in answers) == 7
    assert len(await on.stores.inspect.list_jobs()) == 2


async def test_a_batch_of_ten_thousand_is_one_call(on: Scenario) -> None:
    """Ten thousand items go in at once, each with its ordinal."""
    batch_id = await on.batch(10_000)

    assert (await on.stores.inspect.batch_progress(batch_id)).waiting == 10_000
    arguments = await on.stores.inspect.batch_args(batch_id)
    assert (arguments[0], arguments[9_999], len(arguments)) == (item(0), item(9_999), 10_000)


async def test_items_of_a_batch_obey_its_cap(on: Scenario) -> None:
    """The gate of the batch's specification holds for each of its items."""
    session = await on.worker()
    await on.gate.declare_limits(Declared(caps={"task:llm": 2}))
    await on.batch(5, spec=replace(SPEC, gate=Gate(caps=("task:llm",))))

    assert await on.claim(session) == []
    assert len(await on.admit(session)) == 2
