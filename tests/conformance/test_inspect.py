"""Inspect: the read models."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID, uuid4

import pytest

from headrace.model.batch import BatchItem, ItemPage, Progress
from headrace.model.errors import InvalidInputError, NotFoundError
from headrace.model.job import Completion, JobError, JobState, JobView, NewJob
from headrace.model.stats import Retention
from tests.conformance.scenario import ALL, ARGS, DAY, MINUTE, SECOND, SPEC, Scenario, item, part

S, F, C = JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED


# Jobs


async def test_an_unknown_job_is_none(on: Scenario) -> None:
    """A job that does not exist is None, without attempts."""
    assert await on.stores.inspect.get_job(uuid4()) is None
    assert await on.stores.inspect.get_attempts(uuid4()) == []


async def test_final_jobs_are_found_among_many(on: Scenario) -> None:
    """Of the ids asked for exactly the final ones come back, each with its view."""
    session = await on.worker()
    ids = await on.enqueue(4)
    first, second, _ = await on.claim(session, 3)
    await on.end(session, first, result="1")
    await on.end(session, second, state=F, error=JobError("E", "e"))

    found = await on.stores.inspect.final_jobs([*ids, uuid4()])
    assert found == {first.id: await on.job(first.id), second.id: await on.job(second.id)}
    assert await on.stores.inspect.final_jobs([]) == {}


async def test_known_jobs_are_found_in_any_state(on: Scenario) -> None:
    """Of the ids asked for exactly those that exist come back, whatever their state."""
    session, job = await on.start()
    await on.end(session, job)
    [ready] = await on.enqueue()
    _, running = await on.start(queue="other")

    known = await on.stores.inspect.known_jobs([job.id, ready, running.id, uuid4()])
    assert known == {job.id, ready, running.id}
    assert await on.stores.inspect.known_jobs([]) == frozenset()


async def test_jobs_are_listed_newest_first(on: Scenario) -> None:
    """The list runs from the newest job to the oldest, finished or not, up to its limit."""
    session = await on.worker()
    ids = []
    for _ in range(5):
        ids += await on.enqueue()
        on.clock.advance(SECOND)
    await on.end(session, *await on.claim(session, 2))

    assert [job.id for job in await on.stores.inspect.list_jobs()] == ids[::-1]
    assert [job.id for job in await on.stores.inspect.list_jobs(limit=4)] == ids[:0:-1]


@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_pages_of_jobs_have_each_job_once(on: Scenario, size: int) -> None:
    """Pages that go on before the last job of the page before have all jobs in order, also those made at once."""
    session = await on.worker()
    for count in (3, 1, 2):
        await on.enqueue(count)
        on.clock.advance(SECOND)
    await on.enqueue(queue="mail")
    await on.end(session, *await on.claim(session, 2))
    whole = [(job.created_at, job.id) for job in await on.stores.inspect.list_jobs()]

    seen: list[tuple[datetime, UUID]] = []
    while page := await on.stores.inspect.list_jobs(before=seen[-1] if seen else None, limit=size):
        seen += [(job.created_at, job.id) for job in page]
    assert (seen, len(seen)) == (whole, 7)


async def test_pages_of_a_batch_have_each_item_once(on: Scenario) -> None:
    """Items that were made in one transaction are paged by their ids, and one that moved on is not there twice."""
    batch_id = await on.batch(5)
    first = await on.stores.inspect.list_jobs(batch_id=batch_id, limit=2)
    await on.work_off(await on.worker(), [S])
    last = (first[-1].created_at, first[-1].id)
    rest = await on.stores.inspect.list_jobs(batch_id=batch_id, before=last)
    assert len({job.id for job in [*first, *rest]}) == 5


async def test_pages_of_batches_have_each_batch_once(on: Scenario) -> None:
    """Pages of batches go on where the page before ended."""
    ids = []
    for _ in range(3):
        ids.append(await on.batch(1))
        on.clock.advance(SECOND)
    first = await on.stores.inspect.list_batches(limit=2)
    rest = await on.stores.inspect.list_batches(before=(first[-1].created_at, first[-1].id), limit=2)
    assert [batch.id for batch in [*first, *rest]] == ids[::-1]


async def test_jobs_are_listed_by_task(on: Scenario) -> None:
    """Only jobs of the task are listed, also together with other filters."""
    await on.enqueue()
    [wanted] = await on.enqueue(task="other")
    listed = on.stores.inspect.list_jobs
    assert [view.id for view in await listed(task="other")] == [wanted]
    assert [view.id for view in await listed(task="other", state=JobState.READY)] == [wanted]
    assert await listed(task="none") == []


async def test_jobs_are_listed_by_state_queue_and_batch(on: Scenario) -> None:
    """Each filter narrows the list; together they all hold."""
    session = await on.worker()
    batch_id = await on.batch(2)
    await on.work_off(session, [F])
    await on.enqueue(queue="mail")
    done, job = await on.start(session, queue="other")
    await on.end(done, job, state=F)
    listed = on.stores.inspect.list_jobs

    assert len(await listed()) == 4
    assert {view.state for view in await listed(state=F)} == {F}
    assert len(await listed(state=F)) == 2
    assert [view.queue for view in await listed(queue="mail")] == ["mail"]
    assert {view.batch_id for view in await listed(batch_id=batch_id)} == {batch_id}
    assert len(await listed(state=F, queue="default", batch_id=batch_id)) == 1
    assert await listed(state=F, queue="mail") == []


async def test_a_brief_list_lacks_only_what_may_be_large(on: Scenario) -> None:
    """It has no arguments, results, usage and traces, and all else as the whole list has it."""
    session = await on.worker()
    batch_id = await on.batch(4)
    first, second, third, fourth = await on.claim(session)
    await on.end(session, first, result='{"pages":[1,2]}', usage='{"calls":1}')
    await on.end(session, second, state=F, error=JobError("E", "bad", "Traceback"), usage='{"calls":2}')
    await on.stores.control.cancel_job(third.id)
    await on.end(session, fourth, state=JobState.SCHEDULED, delay=MINUTE, error=JobError("E", "once", "Traceback"))
    _, single = await on.start(session)
    await on.end(session, single, state=F, error=JobError("E", "alone", "Traceback"))
    await on.stores.control.retry_job(single.id)
    listed = on.stores.inspect.list_jobs

    for wanted, count in (({}, 6), ({"batch_id": batch_id}, 4), ({"state": F}, 2), ({"queue": "default"}, 6)):
        whole, brief = await listed(**wanted), await listed(**wanted, brief=True)
        assert brief == [without_values(view) for view in whole] and len(brief) == count
    whole = await listed()
    assert all(view.args for view in whole) and [view.result for view in whole if view.result] == [{"pages": [1, 2]}]
    assert {view.error.trace for view in whole if view.error} == {"Traceback"}
    assert {view.usage["calls"] for view in whole if view.usage} == {1, 2}


def without_values(view: JobView) -> JobView:
    """Return a job as a brief list has it."""
    error = None if view.error is None else replace(view.error, trace="")
    return replace(view, args=None, result=None, usage=None, error=error)


# Queues


async def test_queues_are_counted_by_state(on: Scenario) -> None:
    """Each queue shows how many of its jobs are in each state."""
    session = await on.worker(queues={"default": 1})
    await on.enqueue(7)
    first, second, third, back = await on.claim(session, 4)
    await on.end(session, first)
    await on.end(session, second, state=F)
    await on.end(session, back, state=JobState.SCHEDULED, delay=MINUTE)
    [one, *_] = await on.stores.inspect.list_jobs(state=JobState.READY)
    await on.stores.control.cancel_job(one.id)

    [stats] = await on.stores.inspect.queue_stats()
    assert (stats.name, stats.ready, stats.scheduled, stats.running, stats.parked) == ("default", 2, 1, 1, 0)
    assert (stats.succeeded, stats.failed, stats.cancelled) == (1, 1, 1)
    assert (stats.live_workers, stats.paused) == (1, False)
    assert await on.states([third.id]) == [JobState.RUNNING]


async def test_queues_with_jobs_workers_or_a_setting_are_listed(on: Scenario) -> None:
    """A queue is listed by name when it has jobs, a live worker or a setting."""
    await on.enqueue(queue="jobs")
    await on.worker(queues={"workers": 1, "both": 2})
    await on.worker(queues={"both": 1})
    await on.worker(queues={"gone": 1}, lease=SECOND)
    await on.stores.control.set_queue_paused("paused", paused=True)
    session, job = await on.start(queue="history")
    await on.end(session, job)
    await on.stores.sessions.close_session(session)
    on.clock.advance(SECOND)

    stats = await on.stores.inspect.queue_stats()
    workers = {queue.name: queue.live_workers for queue in stats}
    assert workers == {"both": 2, "history": 0, "jobs": 0, "paused": 0, "workers": 1}
    assert list(workers) == sorted(workers)


async def test_the_longest_wait_is_the_age_of_the_oldest_ready_job(on: Scenario) -> None:
    """The age counts from when a job became ready, whatever its priority; without ready jobs there is none."""
    session = await on.worker()
    await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=on.clock.now() + MINUTE)])
    [before] = await on.stores.inspect.queue_stats()
    await on.enqueue(priority=0)
    on.clock.advance(2 * SECOND)
    await on.enqueue(priority=9)
    on.clock.advance(SECOND)
    [stats] = await on.stores.inspect.queue_stats()
    on.clock.set_now(on.clock.now() - MINUTE)
    [back] = await on.stores.inspect.queue_stats()
    on.clock.set_now(on.clock.now() + MINUTE)
    await on.claim(session)
    [after] = await on.stores.inspect.queue_stats()

    assert [s.oldest_ready_age for s in (before, stats, back, after)] == [None, 3 * SECOND, 0 * SECOND, None]


async def test_rates_are_those_of_the_last_minute(on: Scenario) -> None:
    """Jobs that came and went within the last minute make the rates, per second; older ones do not."""
    session = await on.worker(lease=timedelta(hours=1))
    await on.enqueue(5)
    await on.work_off(session, [S])
    on.clock.advance(MINUTE + SECOND)
    await on.enqueue(6)
    await on.work_off(session, [S, F, C])
    on.clock.advance(30 * SECOND)

    [stats] = await on.stores.inspect.queue_stats()
    assert (stats.rate_in, stats.rate_out) == (pytest.approx(6 / 60), pytest.approx(3 / 60))


# Sessions


async def test_sessions_are_listed_live_ones_first(on: Scenario) -> None:
    """Live sessions come before ended ones, each with the number of jobs it runs."""
    ended = await on.worker(lease=SECOND)
    on.clock.advance(SECOND)
    busy, idle = await on.worker(), await on.worker()
    await on.enqueue(3)
    await on.claim(busy, 2)

    views = await on.stores.inspect.list_sessions()
    assert [view.alive for view in views] == [True, True, False]
    assert {view.id: view.running for view in views} == {busy: 2, idle: 0, ended: 0}


# Batches


async def test_an_unknown_batch_is_none(on: Scenario) -> None:
    """A batch that does not exist is None; only its progress raises NotFoundError."""
    assert await on.stores.inspect.get_batch(uuid4()) is None
    assert await on.stores.inspect.find_batch("work", "k") is None
    assert await on.stores.inspect.batch_args(uuid4()) == {}
    with pytest.raises(NotFoundError):
        await on.stores.inspect.batch_progress(uuid4())


async def test_a_batch_is_found_by_its_key(on: Scenario) -> None:
    """A batch is found under its own task and key alone."""
    batch_id = await on.batch(1, key="k")
    await on.batch(1, key="other")

    found = await on.stores.inspect.find_batch("work", "k")
    assert found == await on.view(batch_id)
    assert await on.stores.inspect.find_batch("other", "k") is None


async def test_batches_are_listed_newest_first(on: Scenario) -> None:
    """The list runs from the newest batch to the oldest, up to its limit."""
    ids = []
    for count in (0, 1, 2):
        ids.append(await on.batch(count))
        on.clock.advance(SECOND)

    assert [batch.id for batch in await on.stores.inspect.list_batches()] == ids[::-1]
    assert [batch.id for batch in await on.stores.inspect.list_batches(limit=2)] == [ids[2], ids[1]]


async def test_progress_counts_items_by_state(on: Scenario) -> None:
    """Progress says what became of each item: the states add up to the total."""
    session = await on.worker()
    batch_id = await on.batch(7)
    await on.work_off(session, [S, S, F, C])
    jobs = await on.claim(session, 2)
    await on.end(session, jobs[0], state=JobState.SCHEDULED, delay=MINUTE)

    progress = await on.stores.inspect.batch_progress(batch_id)
    assert progress == Progress(total=7, succeeded=2, failed=1, cancelled=1, running=1, waiting=2)
    assert (progress.done, progress.percent) == (4, 57)


async def test_progress_of_an_open_batch_has_no_total(on: Scenario) -> None:
    """While items arrive the total is unknown, and the counts show those that came."""
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 2))

    assert await on.stores.inspect.batch_progress(batch_id) == Progress(total=None, waiting=2)


async def test_the_arguments_of_a_batch_are_read_by_ordinal(on: Scenario) -> None:
    """Every item has its arguments, whether it waits, runs, finished or was retried."""
    session = await on.worker()
    batch_id = await on.batch(4)
    await on.work_off(session, [F, S])
    [job] = await on.stores.inspect.list_jobs(state=F)
    await on.stores.control.retry_job(job.id)
    await on.claim(session, 1)

    assert await on.stores.inspect.batch_args(batch_id) == {number: item(number) for number in range(4)}


# Items


async def test_an_item_carries_what_became_of_it(on: Scenario) -> None:
    """A finished item has its ordinal, job, result or error, and cost; failures are included."""
    session = await on.worker()
    batch_id = await on.batch(2)
    good, bad = await on.claim(session)
    error = JobError("E", "message", "trace")
    await on.end(session, good, result='{"a":1}', usage='{"calls":3}')
    await on.end(session, bad, state=F, error=error)

    found = {read.job_id: read for read in await on.read_all(batch_id)}
    assert found[good.id] == BatchItem(
        good.ordinal or 0, S, good.id, result={"a": 1}, cost={"calls": 3}, cursor=found[good.id].cursor
    )
    assert found[bad.id] == BatchItem(bad.ordinal or 0, F, bad.id, error=error, cursor=found[bad.id].cursor)


async def test_a_batch_without_finished_items_gives_an_empty_page(on: Scenario) -> None:
    """Nothing finished: no items, and the cursor stays where it was."""
    batch_id = await on.batch(1)

    assert await on.stores.inspect.read_items(batch_id, cursor="", limit=10) == ItemPage((), "")


async def test_reading_on_misses_none_and_repeats_none(on: Scenario) -> None:
    """Pages of any size give every finished item once, in the order in which they were recorded."""
    session = await on.worker()
    batch_id = await on.batch(23)
    order = [{job.id for job in await on.work_off(session, [S] * count)} for count in (5, 1, 10, 7)]

    for page in (1, 4, 23, 100):
        read = [found.job_id for found in await on.read_all(batch_id, page=page)]
        assert len(read) == 23
        groups, rest = [], list(read)
        for group in order:
            groups.append(set(rest[: len(group)]))
            rest = rest[len(group) :]
        assert groups == order


async def test_a_cursor_resumes_after_its_item(on: Scenario) -> None:
    """The cursor of a page, and of each item, starts the next page right behind it."""
    session = await on.worker()
    batch_id = await on.batch(3)
    for _ in range(3):
        await on.work_off(session, [S])
    first = await on.stores.inspect.read_items(batch_id, cursor="", limit=2)
    rest = await on.stores.inspect.read_items(batch_id, cursor=first.cursor, limit=2)
    behind_one = await on.stores.inspect.read_items(batch_id, cursor=first.items[0].cursor, limit=10)

    assert (len(first.items), len(rest.items)) == (2, 1)
    assert behind_one.items == (first.items[1], *rest.items)
    end = await on.stores.inspect.read_items(batch_id, cursor=rest.cursor, limit=2)
    assert end == ItemPage((), rest.cursor)


async def test_a_reader_that_follows_a_running_batch_sees_every_item(on: Scenario) -> None:
    """Reading on while eight workers finish items misses none, whatever the order of their commits."""
    batch_id = await on.batch(200)
    seen: dict[UUID, BatchItem] = {}

    async def work() -> None:
        session = await on.worker()
        while jobs := await on.claim(session, 3):
            await on.end(session, *jobs)
            await asyncio.sleep(0)

    async def follow(stopped: asyncio.Event) -> None:
        cursor = ""
        while True:
            last = stopped.is_set()
            page = await on.stores.inspect.read_items(batch_id, cursor=cursor, limit=7)
            seen.update({found.job_id: found for found in page.items})
            cursor = page.cursor
            if last and not page.items:
                return
            await asyncio.sleep(0)

    stopped = asyncio.Event()
    follower = asyncio.create_task(follow(stopped))
    await asyncio.gather(*(work() for _ in range(8)))
    stopped.set()
    await follower

    assert sorted(found.index for found in seen.values()) == list(range(200))


async def test_a_retried_item_is_returned_again(on: Scenario) -> None:
    """A reader that saw a failure sees later what its retry gave, at the same index."""
    session = await on.worker()
    batch_id = await on.batch(1)
    await on.work_off(session, [F])
    await on.stores.batches.close_batches([batch_id])
    first = await on.stores.inspect.read_items(batch_id, cursor="", limit=10)
    await on.stores.batches.retry_failed(batch_id)
    [job] = await on.claim(session)
    await on.end(session, job, result='"healed"')
    second = await on.stores.inspect.read_items(batch_id, cursor=first.cursor, limit=10)

    assert [(found.index, found.status) for found in first.items] == [(0, F)]
    assert [(found.index, found.status, found.result) for found in second.items] == [(0, S, "healed")]


async def test_items_of_other_batches_are_not_read(on: Scenario) -> None:
    """A batch's items are its own, whatever finished in between."""
    session = await on.worker()
    left, right = await on.batch(3), await on.batch(3)
    await on.enqueue(2)
    done = await on.claim(session, ALL)
    await on.stores.jobs.complete_jobs(session, [Completion(job.id, job.attempt, S) for job in done])

    for batch_id in (left, right):
        assert {found.job_id for found in await on.read_all(batch_id, page=2)} == {
            job.id for job in done if job.batch_id == batch_id
        }


@pytest.mark.parametrize("cursor", ["x", "-1", "1;drop", "é", " ", "1\x00", "9" * 400, "{}", "٣"])
async def test_a_malformed_cursor_is_refused(on: Scenario, cursor: str) -> None:
    """A cursor that no page ever gave raises InvalidInputError that names the field."""
    session = await on.worker()
    batch_id = await on.batch(1)
    await on.work_off(session, [S])

    with pytest.raises(InvalidInputError, match="cursor"):
        await on.stores.inspect.read_items(batch_id, cursor=cursor, limit=10)


# The store


async def test_a_store_says_what_it_is(on: Scenario) -> None:
    """The store names its kind and version, says whether it is durable, and tells its time."""
    info = await on.stores.inspect.store_info()

    assert info.kind
    assert info.version
    assert info.schema_version >= 1
    assert info.durable or info.notes
    assert info.now is not None
    assert info.now.utcoffset() == timedelta()


async def test_the_arguments_of_a_pruned_item_live_on_in_its_retry(on: Scenario) -> None:
    """An item whose first try was pruned is still there by its retry, with its arguments."""
    session = await on.worker()
    batch_id = await on.batch(1)
    await on.work_off(session, [JobState.FAILED])
    await on.stores.batches.close_batches([batch_id])
    on.clock.advance(2 * DAY)
    await on.stores.batches.retry_failed(batch_id)
    session = await on.worker()
    await on.work_off(session, [JobState.SUCCEEDED])
    await on.stores.batches.close_batches([batch_id])
    before = await on.stores.inspect.batch_args(batch_id)
    removed = await on.stores.jobs.prune_jobs(Retention(failed=DAY), limit=10)

    assert removed.removed["jobs"] == 1
    assert await on.stores.inspect.batch_args(batch_id) == before == {0: item(0)}
