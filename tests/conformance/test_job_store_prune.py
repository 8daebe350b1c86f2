"""JobStore.prune_jobs: what is removed, when, and what never is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from headrace.model.batch import BatchOutcome, BatchState, NewBatch
from headrace.model.job import JobState, NewJob
from headrace.model.llm import Answer, StoredAnswer
from headrace.model.stats import Pruned, Retention
from tests.conformance.scenario import ARGS, DAY, MINUTE, SECOND, SPEC, Scenario, items

KEEP = Retention(succeeded=2 * DAY, failed=4 * DAY, cancelled=3 * DAY, answers=5 * DAY)
KEPT = {JobState.SUCCEEDED: KEEP.succeeded, JobState.FAILED: KEEP.failed, JobState.CANCELLED: KEEP.cancelled}


async def prune(on: Scenario, limit: int = 1_000, queue: str | None = None) -> Pruned:
    """Prune once."""
    return await on.stores.jobs.prune_jobs(KEEP, limit=limit, queue=queue)


async def finish(on: Scenario, count: int = 1, state: JobState = JobState.SUCCEEDED, queue: str = "default") -> None:
    """Run jobs to their end."""
    session = await on.worker()
    await on.enqueue(count, queue=queue)
    await on.end(session, *await on.claim(session, queue=queue), state=state)


async def known(on: Scenario) -> list[UUID]:
    """Return the ids of all jobs."""
    return [job.id for job in await on.stores.inspect.list_jobs(limit=1_000)]


@pytest.mark.parametrize("state", list(KEPT))
async def test_each_final_state_has_its_own_retention(on: Scenario, state: JobState) -> None:
    """A finished job is kept for the retention of its state, counted from its end, and removed after it."""
    await finish(on, state=state)
    [job_id] = await known(on)
    on.clock.advance(KEPT[state] - SECOND)
    await prune(on)
    assert await known(on) == [job_id]
    on.clock.advance(2 * SECOND)

    assert (await prune(on)).total >= 1
    assert await known(on) == []
    assert await on.stores.inspect.get_job(job_id) is None


async def test_a_job_takes_its_attempts_and_steps_along(on: Scenario) -> None:
    """With a job its attempt records and steps are removed."""
    session, job = await on.start()
    await on.stores.jobs.save_step(job.id, attempt=1, session=session, name="s", value="1")
    await on.end(session, job, state=JobState.READY, charged=True)
    [job] = await on.claim(session)
    await on.end(session, job)
    on.clock.advance(KEEP.succeeded + SECOND)
    await prune(on)

    assert await on.stores.inspect.get_attempts(job.id) == []
    assert await on.stores.jobs.load_steps(job.id) == {}


async def test_a_retry_stays_as_long_as_what_it_repeats(on: Scenario) -> None:
    """A succeeded retry outlives its own retention while the failed original is kept: nothing counts or runs again."""
    session = await on.worker()
    batch_id = await on.batch(2)
    jobs = await on.work_off(session, [JobState.FAILED, JobState.SUCCEEDED])
    await on.stores.batches.close_batches([batch_id])
    await on.stores.batches.retry_failed(batch_id)
    await on.work_off(session, [JobState.SUCCEEDED])
    await on.stores.batches.close_batches([batch_id])
    before = await on.stores.inspect.batch_progress(batch_id)
    on.clock.advance(KEEP.succeeded + SECOND)
    await prune(on)

    progress = await on.stores.inspect.batch_progress(batch_id)
    assert (progress.failed, progress.succeeded, before.succeeded) == (0, 1, 2)
    assert await on.stores.batches.retry_failed(batch_id) == 0
    assert await on.stores.control.retry_queue("default", limit=10) == []
    assert len(await known(on)) == 2
    assert jobs[0].id in await known(on)


async def test_a_chain_of_retries_goes_in_one_call(on: Scenario) -> None:
    """Failed retries of a failed job go together with it once all are old enough, and within the limit."""
    session, job = await on.start()
    await on.end(session, job, state=JobState.FAILED)
    for _ in range(3):
        await on.stores.control.retry_queue("default", limit=10)
        await on.work_off(session, [JobState.FAILED])
        on.clock.advance(SECOND)
    on.clock.advance(KEEP.failed + SECOND)
    assert (await prune(on, limit=2, queue="default")).total == 2
    assert (await prune(on, queue="default")).total == 2

    assert await known(on) == []


async def test_jobs_that_are_not_final_are_never_pruned(on: Scenario) -> None:
    """Ready, scheduled and running jobs stay, however old they are."""
    await on.start(queue="other")
    await on.enqueue()
    session, job = await on.start(queue="late")
    await on.end(session, job, state=JobState.SCHEDULED, delay=400 * DAY)
    on.clock.advance(300 * DAY)
    await prune(on)

    assert len(await known(on)) == 3


async def test_pruning_stops_at_its_limit(on: Scenario) -> None:
    """One call removes at most its limit of jobs; the next ones go on until nothing is left."""
    await finish(on, 5)
    on.clock.advance(KEEP.succeeded + SECOND)

    left = []
    for _ in range(4):
        await prune(on, limit=2)
        left.append(len(await known(on)))
    assert left == [3, 1, 0, 0]


async def test_a_limit_is_not_used_up_by_what_must_stay(on: Scenario) -> None:
    """Jobs that may not go yet do not keep others from being removed."""
    session = await on.worker()
    await on.batch(6)
    await on.work_off(session, [JobState.SUCCEEDED] * 5)
    on.clock.advance(SECOND)
    await finish(on, 2, queue="other")
    on.clock.advance(KEEP.succeeded + SECOND)
    await prune(on, limit=3)

    assert len(await known(on)) == 6


async def test_pruning_may_be_restricted_to_a_queue(on: Scenario) -> None:
    """With a queue only finished jobs of that queue are removed."""
    await finish(on, queue="left")
    await finish(on, queue="right")
    on.clock.advance(KEEP.succeeded + SECOND)
    await prune(on, queue="left")

    assert [job.queue for job in await on.stores.inspect.list_jobs()] == ["right"]


async def test_what_was_removed_is_counted(on: Scenario) -> None:
    """The answer counts the rows that went; a second call finds nothing more."""
    await finish(on, 3)
    on.clock.advance(KEEP.succeeded + SECOND)

    assert (await prune(on, queue="default")).total == 3
    assert (await prune(on, queue="default")).total == 0


async def test_expired_keys_are_removed(on: Scenario) -> None:
    """Keys whose seven days are over are removed, and counted; their jobs stay, and younger keys do."""
    for key in ("old", "young"):
        await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, key=key)])
        on.clock.advance(4 * DAY)

    assert (await prune(on)).total == 1
    assert (await prune(on)).total == 0
    assert len(await known(on)) == 2


# Batches


async def test_finished_jobs_of_an_unclosed_batch_stay(on: Scenario) -> None:
    """As long as a batch is not closed all its finished items stay, however old."""
    session = await on.worker()
    batch_id = await on.batch(2)
    await on.work_off(session, [JobState.SUCCEEDED])
    on.clock.advance(100 * DAY)
    await prune(on)

    assert len(await on.read_all(batch_id)) == 1


async def test_a_closed_batch_follows_its_jobs(on: Scenario) -> None:
    """A closed batch is removed once its last job is; until then it stays readable."""
    session = await on.worker()
    batch_id = await on.batch(2)
    await on.work_off(session, [JobState.SUCCEEDED, JobState.FAILED])
    await on.stores.batches.close_batches([batch_id])
    on.clock.advance(KEEP.succeeded + SECOND)
    await prune(on)
    await prune(on)
    assert (await on.view(batch_id)).outcome is BatchOutcome.PARTIAL
    assert [item.status for item in await on.read_all(batch_id)] == [JobState.FAILED]
    on.clock.advance(KEEP.failed)
    await prune(on)
    await prune(on)

    assert await on.stores.inspect.get_batch(batch_id) is None
    assert await on.stores.inspect.list_batches() == []


async def test_a_batch_key_lives_as_long_as_its_batch(on: Scenario) -> None:
    """The key of a batch answers long after seven days, and is free once the batch is gone."""
    new = NewBatch(SPEC, key="k", body_hash="b")
    await on.stores.batches.create_batch(new, items(1))
    on.clock.advance(30 * DAY)
    await prune(on)
    assert await on.stores.batches.create_batch(NewBatch(SPEC, key="k", body_hash="b"), items(1)) == new.id
    await on.work_off(await on.worker(), [JobState.SUCCEEDED])
    await on.stores.batches.close_batches([new.id])
    on.clock.advance(KEEP.succeeded + SECOND)
    await prune(on)
    await prune(on)

    other = NewBatch(SPEC, key="k", body_hash="other")
    assert await on.stores.batches.create_batch(other, items(1)) == other.id
    found = await on.stores.inspect.find_batch("work", "k")
    assert found is not None
    assert found.id == other.id


async def test_an_empty_batch_is_kept_like_a_success(on: Scenario) -> None:
    """A batch that never had items stays as long as a succeeded job would."""
    batch_id = await on.batch(0)
    on.clock.advance(KEEP.succeeded - SECOND)
    await prune(on)
    assert (await on.view(batch_id)).state is BatchState.CLOSED
    on.clock.advance(2 * SECOND)
    await prune(on)

    assert await on.stores.inspect.get_batch(batch_id) is None


async def test_batches_that_are_not_closed_stay(on: Scenario) -> None:
    """Open and sealed batches are never removed, with or without items."""
    ids = [await on.open_batch(), await on.batch(1)]
    on.clock.advance(400 * DAY)
    await prune(on)

    assert {batch.id for batch in await on.stores.inspect.list_batches()} == set(ids)


# Answers and sessions


async def test_answers_are_kept_for_their_retention(on: Scenario) -> None:
    """A paid answer is kept for its retention, counted from when it was stored, and removed after it."""
    key = "a" * 64
    answer = StoredAnswer("openai", Answer(text="first"))
    await on.stores.memo.store_answer(key, answer)
    on.clock.advance(KEEP.answers - SECOND)
    await prune(on)
    assert await on.stores.memo.load_answer(key) == answer
    on.clock.advance(2 * SECOND)
    await prune(on)

    assert await on.stores.memo.load_answer(key) is None


async def test_the_key_of_a_removed_answer_is_free(on: Scenario) -> None:
    """After an answer was removed another one may be stored under its key, and stands."""
    key = "a" * 64
    await on.stores.memo.store_answer(key, StoredAnswer("openai", Answer(text="first")))
    on.clock.advance(KEEP.answers + SECOND)
    await prune(on)

    again = StoredAnswer("openai", Answer(text="second"))
    assert await on.stores.memo.store_answer(key, again) == again
    assert await on.stores.memo.load_answer(key) == again


@pytest.mark.parametrize("state", list(KEPT))
async def test_answers_are_kept_at_least_as_long_as_jobs(on: Scenario, state: JobState) -> None:
    """A retention of answers shorter than that of some jobs is raised to it: a retry buys nothing twice."""
    keep = replace(Retention(DAY, DAY, DAY, answers=SECOND), **{state.value: 3 * DAY})
    await on.stores.memo.store_answer("c" * 64, StoredAnswer("openai", Answer(text="paid")))
    on.clock.advance(3 * DAY - SECOND)
    await on.stores.jobs.prune_jobs(keep, limit=10)
    assert await on.stores.memo.load_answer("c" * 64) is not None
    on.clock.advance(2 * SECOND)
    await on.stores.jobs.prune_jobs(keep, limit=10)

    assert await on.stores.memo.load_answer("c" * 64) is None


async def test_a_former_leader_prunes_nothing(on: Scenario) -> None:
    """Under a term after which another began nothing goes; under the current one it does."""
    former = await on.term(SECOND)
    on.clock.advance(2 * SECOND)
    current = await on.term()
    await finish(on)
    await on.batch(0)
    on.clock.advance(KEEP.succeeded + SECOND)
    current = await on.stores.sessions.lead(current.session, lease=DAY) or current

    assert (await on.stores.jobs.prune_jobs(KEEP, limit=10, term=former)).total == 0
    removed = (await on.stores.jobs.prune_jobs(KEEP, limit=10, term=current)).removed
    assert (removed["jobs"], removed["batches"]) == (1, 1)


async def test_sessions_are_listed_for_a_day_after_their_end(on: Scenario) -> None:
    """A session that ended is listed for a day; a live one always."""
    await on.worker(lease=MINUTE)
    alive = await on.worker(lease=10 * DAY)
    on.clock.advance(DAY)
    await prune(on)
    assert len(await on.stores.inspect.list_sessions()) == 2
    on.clock.advance(MINUTE + SECOND)
    await prune(on)

    assert [session.id for session in await on.stores.inspect.list_sessions()] == [alive]


async def test_a_queue_of_its_own_leaves_other_rows_alone(on: Scenario) -> None:
    """Restricted to a queue, pruning removes no session, no batch and no answer."""
    await on.worker(lease=timedelta(seconds=1))
    batch_id = await on.batch(0)
    await on.stores.memo.store_answer("b" * 64, StoredAnswer("openai", Answer(text="kept")))
    on.clock.advance(100 * DAY)
    await prune(on, queue="default")

    assert len(await on.stores.inspect.list_sessions()) == 1
    assert await on.stores.inspect.get_batch(batch_id) is not None
    assert await on.stores.memo.load_answer("b" * 64) is not None
