"""JobStore: parking. A job waits for a signal or a time without a slot, and runs again when either comes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from headrace.model.admission import WaitReason
from headrace.model.job import CancelAnswer, Claim, ClaimedJob, Completion, JobError, JobState, NewJob, Park
from headrace.model.limits import Gate
from headrace.model.run import RunState
from headrace.model.stats import Rescued
from tests.conformance.runs import Runs
from tests.conformance.scenario import ARGS, DAY, LEASE, MINUTE, SECOND, SPEC, Scenario

ERROR = JobError("ValueError", "no such thing")


async def park(on: Scenario, park: Park, session: UUID | None = None, **spec: object) -> tuple[UUID, ClaimedJob]:
    """Run a job until it parks; return the session and the job."""
    session, job = await on.start(session or await on.worker(lease=DAY), **spec)
    assert await on.end(session, job, state=JobState.PARKED, park=park) == [job.id]
    return session, job


async def stage(on: Scenario) -> frozenset[str]:
    """Sweep once."""
    return await on.stores.jobs.stage_jobs(limit=100)


# Waiting


@pytest.mark.parametrize("what", [Park("k"), Park("k", MINUTE), Park(None, MINUTE), Park()])
async def test_a_parked_job_has_no_slot(on: Scenario, what: Park) -> None:
    """It runs under no session, and nothing is charged or kept of its attempt."""
    session, job = await park(on, what)

    view = await on.job(job.id)
    assert (view.state, view.session, view.started_at, view.finished_at) == (JobState.PARKED, None, None, None)
    assert (view.attempt, view.failures, view.crashes) == (1, 0, 0)
    assert view.run_at == (None if what.wait is None else on.clock.now() + what.wait)
    assert await on.stores.inspect.get_attempts(job.id) == []
    assert await on.claim(session) == []
    assert await on.stores.jobs.claimed_jobs(session, queue="default") == []


async def test_a_parked_job_is_shown_as_parked(on: Scenario) -> None:
    """By lists, figures and counts of its queue."""
    _, job = await park(on, Park("k"))
    await on.enqueue()

    [stats] = await on.stores.inspect.queue_stats()
    assert (stats.parked, stats.ready, stats.running, stats.scheduled) == (1, 1, 0, 0)
    [view] = await on.stores.inspect.list_jobs(state=JobState.PARKED)
    assert view == await on.job(job.id)
    assert view.id in [other.id for other in await on.stores.inspect.list_jobs(queue="default")]
    live = await on.stores.inspect.live_jobs("default")
    assert (live.get(JobState.PARKED), live.get(JobState.READY), live.get(JobState.RUNNING, 0)) == (1, 1, 0)
    assert await on.stores.inspect.final_jobs([job.id]) == {}
    assert await on.stores.inspect.known_jobs([job.id]) == {job.id}


async def test_why_a_parked_job_waits_is_explained(on: Scenario) -> None:
    """By the signal and the time it waits for."""
    _, job = await park(on, Park("order:7", MINUTE))

    explained = await on.gate.explain_job(job.id)
    assert explained is not None
    assert (explained.state, explained.reason) == (JobState.PARKED, WaitReason.PARKED)
    assert (explained.subject, explained.until) == ("order:7", on.clock.now() + MINUTE)


async def test_a_time_of_before_is_forgotten(on: Scenario) -> None:
    """A job that was scheduled once and parks on a signal alone is woken by no time."""
    [job_id] = await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=on.clock.now() + SECOND)])
    on.clock.advance(SECOND)
    await stage(on)
    session = await on.worker(lease=DAY)
    [job] = await on.claim(session)
    await on.end(session, job, state=JobState.PARKED, park=Park("k"))

    assert (await on.job(job_id)).run_at is None
    on.clock.advance(DAY)
    assert await stage(on) == frozenset()


async def test_a_job_parked_on_nothing_waits(on: Scenario) -> None:
    """Neither time nor a sweep wakes it; a cancel ends it."""
    _, job = await park(on, Park())
    on.clock.advance(100 * DAY)
    await stage(on)

    assert (await on.job(job.id)).state is JobState.PARKED
    assert await on.stores.control.cancel_job(job.id) is CancelAnswer.CANCELLED


async def test_the_end_of_its_session_is_nothing_to_a_parked_job(on: Scenario) -> None:
    """It is neither rescued nor overdue."""
    _, job = await park(on, Park("k"), await on.worker(), timeout=SECOND)
    on.clock.advance(LEASE + MINUTE)

    assert await on.stores.jobs.rescue_jobs(limit=10) == Rescued()
    assert await on.stores.jobs.fail_overdue_jobs(grace=SECOND, limit=10, term=await on.term()) == Rescued()
    assert (await on.job(job.id)).state is JobState.PARKED


# Waking


async def test_a_signal_wakes(on: Scenario) -> None:
    """The job is ready with it and runs as its next attempt; nothing is charged."""
    session, job = await park(on, Park("k", DAY))
    on.clock.advance(SECOND)
    assert await on.stores.signals.send_signal("k", '{"ok": true}')

    view = await on.job(job.id)
    assert (view.state, view.failures, view.crashes) == (JobState.READY, 0, 0)
    [again] = await on.claim(session)
    assert (again.id, again.attempt, again.failures, again.crashes) == (job.id, 2, 0, 0)
    on.clock.advance(2 * DAY)
    assert await stage(on) == frozenset()
    assert (await on.job(job.id)).state is JobState.RUNNING


async def test_a_time_wakes(on: Scenario) -> None:
    """From its time on the sweep makes it ready, and names its queue; not before."""
    session, job = await park(on, Park(None, MINUTE), queue="mail")
    on.clock.advance(MINUTE - SECOND)
    assert await stage(on) == frozenset()
    on.clock.advance(SECOND)

    assert await stage(on) == {"mail"}
    assert await stage(on) == frozenset()
    [again] = await on.claim(session, queue="mail")
    assert (again.id, again.attempt, again.failures) == (job.id, 2, 0)


async def test_whichever_comes_first_wakes(on: Scenario) -> None:
    """A job parked on both wakes by its time, and a signal that comes later does nothing to it."""
    session, job = await park(on, Park("k", MINUTE))
    on.clock.advance(MINUTE)
    assert await stage(on) == {"default"}
    [again] = await on.claim(session)
    assert await on.stores.signals.send_signal("k", "1")

    assert (await on.job(job.id)).state is JobState.RUNNING
    assert await on.end(session, again) == [job.id]


async def test_an_early_signal_lets_nobody_wait(on: Scenario) -> None:
    """A job that parks on a signal that has come is ready at once."""
    await on.stores.signals.send_signal("k", "1")
    session, job = await park(on, Park("k", DAY))

    assert (await on.job(job.id)).state is JobState.READY
    assert [again.attempt for again in await on.claim(session)] == [2]


async def test_signals_of_other_keys_wake_nobody(on: Scenario) -> None:
    """Keys are whole: neither a beginning nor a longer one is the same."""
    _, job = await park(on, Park("order:7"))
    for key in ("order:", "order:77", "order:8", "ORDER:7"):
        await on.stores.signals.send_signal(key, "1")

    assert (await on.job(job.id)).state is JobState.PARKED


async def test_a_woken_job_queues_up(on: Scenario) -> None:
    """Behind those that were ready before it woke, with its priority, wherever it stood at first."""
    session, first = await park(on, Park("k"))
    _, timed = await park(on, Park(None, MINUTE), session)
    on.clock.advance(SECOND)
    [between] = await on.enqueue()
    on.clock.advance(SECOND)
    await on.stores.signals.send_signal("k", "1")
    on.clock.advance(2 * MINUTE)
    [newest] = await on.enqueue()
    await stage(on)

    assert [job.id for job in await on.claim(session)] == [between, first.id, timed.id, newest]


async def test_an_early_signal_gives_no_place_back(on: Scenario) -> None:
    """Who parks on a signal that has come queues up behind those that are ready."""
    await on.stores.signals.send_signal("k", "1")
    session, job = await on.start(await on.worker(lease=DAY))
    on.clock.advance(SECOND)
    [other] = await on.enqueue()
    on.clock.advance(SECOND)
    await on.end(session, job, state=JobState.PARKED, park=Park("k"))

    assert [claimed.id for claimed in await on.claim(session)] == [other, job.id]


async def test_a_job_parks_again(on: Scenario) -> None:
    """As often as it likes, without an attempt charged; a stored signal wakes it each time."""
    session, job = await park(on, Park("k"))
    await on.stores.signals.send_signal("k", "1")
    for attempt in (2, 3):
        [job] = await on.claim(session)
        assert (job.attempt, job.failures) == (attempt, 0)
        await on.end(session, job, state=JobState.PARKED, park=Park("k"))
    [job] = await on.claim(session)
    await on.end(session, job, state=JobState.PARKED, park=Park("other"))

    assert (await on.job(job.id)).state is JobState.PARKED
    assert (await on.job(job.id)).attempt == 4


async def test_many_wait_for_one_signal(on: Scenario) -> None:
    """All of them wake, in all queues; those of other keys wait on."""
    session = await on.worker(lease=DAY)
    await on.enqueue(5)
    await on.enqueue(5, queue="mail")
    jobs = [*await on.claim(session), *await on.claim(session, queue="mail")]
    await on.end(session, *jobs, state=JobState.PARKED, park=Park("k"))
    _, other = await park(on, Park("l"), session)
    await on.stores.signals.send_signal("k", "1")

    assert await on.states([job.id for job in jobs]) == [JobState.READY] * 10
    assert (await on.job(other.id)).state is JobState.PARKED


async def test_staging_moves_no_more_than_its_limit(on: Scenario) -> None:
    """Of scheduled and parked jobs together."""
    session = await on.worker(lease=DAY)
    await on.enqueue(3)
    await on.end(session, *await on.claim(session), state=JobState.PARKED, park=Park(None, SECOND))
    await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=on.clock.now() + SECOND) for _ in range(3)])
    on.clock.advance(MINUTE)

    ready = []
    for _ in range(3):
        await on.stores.jobs.stage_jobs(limit=4)
        ready.append(len(await on.stores.inspect.list_jobs(state=JobState.READY)))
    assert ready == [4, 6, 6]


async def test_no_signal_is_lost_between_looking_and_parking(on: Scenario) -> None:
    """Jobs that park while their signals are sent are all ready in the end."""
    session = await on.worker(lease=DAY)
    await on.enqueue(30)
    jobs = await on.claim(session)
    keys = [f"k{number}" for number in range(30)]
    parking = [on.end(session, job, state=JobState.PARKED, park=Park(key)) for job, key in zip(jobs, keys, strict=True)]
    sending = [on.stores.signals.send_signal(key, "1") for key in keys]
    await asyncio.gather(*(act for pair in zip(parking, sending, strict=True) for act in pair))

    assert await on.states([job.id for job in jobs]) == [JobState.READY] * 30


# Endings


async def test_a_parked_job_is_cancelled_at_once(on: Scenario) -> None:
    """Neither its signal nor its time brings it back."""
    session, job = await park(on, Park("k", MINUTE))

    assert await on.stores.control.cancel_job(job.id) is CancelAnswer.CANCELLED
    view = await on.job(job.id)
    assert (view.state, view.finished_at) == (JobState.CANCELLED, on.clock.now())
    await on.stores.signals.send_signal("k", "1")
    on.clock.advance(MINUTE)
    assert await stage(on) == frozenset()
    assert await on.claim(session) == []


async def test_a_job_asked_to_stop_does_not_park(on: Scenario) -> None:
    """It is cancelled instead, whatever it would wait for."""
    session, job = await on.start()
    await on.stores.control.cancel_job(job.id)
    await on.end(session, job, state=JobState.PARKED, park=Park("k", MINUTE), error=ERROR)

    view = await on.job(job.id)
    assert (view.state, view.error) == (JobState.CANCELLED, ERROR)


async def test_parking_is_fenced(on: Scenario) -> None:
    """Of another attempt or session it is refused, and an attempt that parked ends nothing any more."""
    session, job = await on.start(await on.worker(lease=DAY))
    facts = {"state": JobState.PARKED, "park": Park("k")}
    assert await on.end(session, replace(job, attempt=2), **facts) == []
    assert await on.end(uuid4(), job, **facts) == []
    assert (await on.job(job.id)).state is JobState.RUNNING
    assert await on.end(session, job, **facts) == [job.id]

    assert await on.end(session, job) == []
    assert await on.end(session, job, **facts) == []
    assert (await on.job(job.id)).state is JobState.PARKED


async def test_a_late_attempt_does_not_park_the_next(on: Scenario) -> None:
    """After a wake the attempt before has no word any more."""
    session, job = await park(on, Park("k"))
    await on.stores.signals.send_signal("k", "1")
    await on.claim(session)

    assert await on.end(session, job, state=JobState.PARKED, park=Park("l")) == []
    assert (await on.job(job.id)).state is JobState.RUNNING


async def test_an_exchange_parks_too(on: Scenario) -> None:
    """And may claim what waits."""
    session, job = await on.start(await on.worker(lease=DAY))
    [other] = await on.enqueue()
    done = [Completion(job.id, job.attempt, JobState.PARKED, park=Park("k"))]
    accepted, claimed = await on.stores.jobs.exchange_jobs(session, done, Claim(session, "default", 5))

    assert accepted == [job.id]
    assert [job.id for job in [*claimed, *await on.claim(session)]] == [other]
    assert (await on.job(job.id)).state is JobState.PARKED


async def test_parks_and_endings_go_in_together(on: Scenario) -> None:
    """One call ends some jobs and parks others."""
    session = await on.worker(lease=DAY)
    await on.enqueue(5)
    jobs = await on.claim(session)
    await on.stores.signals.send_signal("come", "1")
    ends: list[tuple[JobState, Park | None]] = [
        (JobState.SUCCEEDED, None),
        (JobState.PARKED, Park("k")),
        (JobState.PARKED, Park(None, MINUTE)),
        (JobState.PARKED, Park("come")),
        (JobState.READY, None),
    ]
    done = [Completion(job.id, job.attempt, state, park=what) for job, (state, what) in zip(jobs, ends, strict=True)]

    assert len(await on.stores.jobs.complete_jobs(session, done)) == 5
    assert await on.states([job.id for job in jobs]) == [
        JobState.SUCCEEDED,
        JobState.PARKED,
        JobState.PARKED,
        JobState.READY,
        JobState.READY,
    ]


# Batches, gates, runs


async def test_a_parked_item_waits_in_its_batch(on: Scenario) -> None:
    """It counts as waiting, and a cancel of the batch ends it."""
    session = await on.worker(lease=DAY)
    batch_id = await on.batch(2)
    first, second = await on.claim(session)
    await on.end(session, first, state=JobState.PARKED, park=Park("k"))
    await on.end(session, second)
    assert (await on.stores.inspect.batch_progress(batch_id)).waiting == 1
    assert await on.stores.batches.close_batches([batch_id]) == []
    await on.stores.batches.cancel_batch(batch_id)
    await on.stores.batches.sweep_batches(term=await on.term(), seal_timeout=DAY, limit=10)

    assert (await on.job(first.id)).state is JobState.CANCELLED


async def test_a_parked_job_frees_its_cap(on: Scenario) -> None:
    """Others run while it waits; woken it passes the gate again."""
    session, gate = await on.worker(lease=DAY), Gate(caps=("task:work",))
    await on.gate.set_cap("task:work", 1)
    await on.enqueue(2, gate=gate)
    [first] = await on.admit(session)
    await on.end(session, first, state=JobState.PARKED, park=Park("k"))
    [second] = await on.admit(session)
    await on.stores.signals.send_signal("k", "1")
    assert await on.admit(session) == []
    await on.end(session, second)

    [again] = await on.admit(session)
    assert (again.id, again.attempt) == (first.id, 2)


async def test_a_parked_job_keeps_its_in_order_key(on: Scenario) -> None:
    """The next of its key waits for it, and it goes before that one when it wakes."""
    session, gate = await on.worker(lease=DAY), Gate(key="user:7", key_limit=1)
    await on.enqueue(2, gate=gate)
    [first] = await on.admit(session)
    await on.end(session, first, state=JobState.PARKED, park=Park("k"))
    assert await on.admit(session) == []
    await on.stores.signals.send_signal("k", "1")

    [again] = await on.admit(session)
    assert again.id == first.id
    await on.end(session, again)
    assert len(await on.admit(session)) == 1


async def test_a_parked_job_of_a_run_keeps_its_node(on: Scenario, runs: Runs) -> None:
    """Woken it is the same job of the same node, and waits for nothing any more."""
    run_id, [job] = await runs.begin("a")
    await runs.park(job, Park("k", MINUTE))
    await on.stores.signals.send_signal("k", "1")
    [live] = await runs.store.live_nodes(run_id)
    assert (live.state, live.parked_on) == (JobState.READY, None)

    [again] = await runs.claim()
    assert (again.id, again.run_id, again.node, again.attempt) == (job.id, run_id, "a", 2)
    await runs.done(again)
    assert (await runs.run(run_id)).state is RunState.RUNNING
    assert await runs.unsettled() == []
