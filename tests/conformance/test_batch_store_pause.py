"""BatchStore.pause_batch, resume_batch and settle_paused: holding the jobs of a batch, and letting them go in order."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from headrace.model.admission import WaitReason
from headrace.model.batch import BatchOutcome, BatchState, ClosePolicy, Progress
from headrace.model.errors import ConflictError, NotFoundError
from headrace.model.job import ClaimedJob, JobState, Park
from headrace.model.limits import Gate
from headrace.model.priority import Priority, head_start
from tests.conformance.scenario import ALL, LEASE, MINUTE, SECOND, SPEC, Scenario, part

S, F = JobState.SUCCEEDED, JobState.FAILED


async def pause(on: Scenario, batch_id: UUID) -> int:
    """Pause a batch and hold all of it."""
    await on.stores.batches.pause_batch(batch_id)
    return await on.stores.batches.settle_paused(batch_id, limit=ALL)


async def resume(on: Scenario, batch_id: UUID) -> int:
    """Resume a batch and let all of it go."""
    await on.stores.batches.resume_batch(batch_id)
    return await on.stores.batches.settle_paused(batch_id, limit=ALL)


def ordinals(jobs: list[ClaimedJob]) -> list[int | None]:
    """Return the places of jobs in their batch."""
    return [job.ordinal for job in jobs]


async def test_a_paused_batch_starts_nothing_and_its_running_jobs_go_on(on: Scenario) -> None:
    """What waits is held and told in the progress; what runs ends as ever; other jobs are claimed."""
    session = await on.worker()
    batch_id = await on.batch(4)
    [running] = await on.claim(session, 1)
    await on.enqueue(2)

    assert await pause(on, batch_id) == 3
    assert [job.batch_id for job in await on.claim(session)] == [None, None]
    await on.end(session, running)
    assert await on.stores.inspect.batch_progress(batch_id) == Progress(4, succeeded=1, waiting=3)
    assert len(await on.read_all(batch_id)) == 1
    assert await on.stores.batches.close_batches([batch_id]) == []


async def test_a_resume_keeps_the_order(on: Scenario) -> None:
    """Held jobs come back at their places: before what was enqueued later, behind what was enqueued before."""
    session = await on.worker(lease=timedelta(hours=1))
    earlier = await on.enqueue()
    on.clock.advance(SECOND)
    batch_id = await on.batch(5)
    await pause(on, batch_id)
    on.clock.advance(MINUTE)
    later = await on.enqueue()

    assert await resume(on, batch_id) == 5
    claimed = await on.claim(session)
    assert [job.id for job in claimed if job.batch_id is None] == [*earlier, *later]
    assert ordinals(claimed) == [None, 0, 1, 2, 3, 4, None]


async def test_holding_and_letting_go_come_in_slices_the_first_first(on: Scenario) -> None:
    """Each call moves at most its limit; what is let go first is what comes first."""
    session = await on.worker()
    batch_id = await on.batch(5)
    await on.stores.batches.pause_batch(batch_id)
    assert [await on.stores.batches.settle_paused(batch_id, limit=2) for _ in range(4)] == [2, 2, 1, 0]
    await on.stores.batches.resume_batch(batch_id)

    assert await on.stores.batches.settle_paused(batch_id, limit=2) == 2
    assert ordinals(await on.claim(session)) == [0, 1]
    assert [await on.stores.batches.settle_paused(batch_id, limit=2) for _ in range(3)] == [2, 1, 0]
    assert ordinals(await on.claim(session)) == [2, 3, 4]


async def test_a_pause_is_seen_and_pausing_again_replaces_the_reason(on: Scenario) -> None:
    """The view tells since when and why; a second pause changes the reason alone; a resume ends it."""
    batch_id = await on.batch(1)
    assert (await on.view(batch_id)).paused_at is None
    began = on.clock.now()
    await on.stores.batches.pause_batch(batch_id, reason="an incident")
    on.clock.advance(SECOND)
    await on.stores.batches.pause_batch(batch_id, reason="a longer one")

    view = await on.view(batch_id)
    assert (view.state, view.paused_at, view.paused_reason) == (BatchState.SEALED, began, "a longer one")
    assert [(one.paused_at, one.paused_reason) for one in await on.stores.inspect.list_batches()] == [
        (began, "a longer one")
    ]
    await on.stores.batches.pause_batch(batch_id)
    assert (await on.view(batch_id)).paused_reason is None
    await resume(on, batch_id)
    await resume(on, batch_id)
    view = await on.view(batch_id)
    assert (view.paused_at, view.paused_reason) == (None, None)


async def test_what_has_nothing_to_start_is_not_paused(on: Scenario) -> None:
    """A closed batch and one being cancelled are refused by name; one that does not exist is not found."""
    session = await on.worker()
    batches = on.stores.batches
    closed = await on.batch(1)
    await on.work_off(session, [S])
    await batches.close_batches([closed])
    cancelling = await on.batch(1)
    await batches.cancel_batch(cancelling)

    with pytest.raises(ConflictError, match="is closed"):
        await batches.pause_batch(closed)
    with pytest.raises(ConflictError, match="is cancelling"):
        await batches.pause_batch(cancelling)
    for call in (batches.pause_batch, batches.resume_batch):
        with pytest.raises(NotFoundError):
            await call(uuid4())
    with pytest.raises(NotFoundError):
        await batches.settle_paused(uuid4(), limit=1)


async def test_what_comes_later_is_held_at_once(on: Scenario) -> None:
    """Appended items, retries without and with a delay, releases and rescued jobs of a paused batch never start."""
    session, dying = await on.worker(), await on.worker()
    batch_id = await on.open_batch()
    await on.stores.batches.append_slice(part(batch_id, 0, 4))
    again, later, released = await on.claim(session, 3)
    await on.claim(dying)
    on.clock.advance(SECOND)
    await on.stores.batches.pause_batch(batch_id)
    await on.stores.batches.append_slice(part(batch_id, 4, 2))
    on.clock.advance(SECOND)
    await on.end(session, again, state=JobState.READY, charged=True)
    await on.end(session, later, state=JobState.SCHEDULED, delay=SECOND, charged=True)
    await on.end(session, released, state=JobState.READY)
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=ALL)
    assert await on.stores.jobs.stage_jobs(limit=ALL) == frozenset()

    fresh = await on.worker()
    assert await on.claim(fresh) == []
    assert (await on.stores.inspect.batch_progress(batch_id)).waiting == 6
    assert await resume(on, batch_id) == 6
    # At their places: what was released and rescued at the old ones, the retries behind.
    assert ordinals(await on.claim(fresh)) == [2, 3, 4, 5, 0, 1]


async def test_an_overdue_attempt_of_a_paused_batch_is_held(on: Scenario) -> None:
    """The attempt that ran too long fails, and its retry waits for the resume."""
    session = await on.worker(lease=timedelta(hours=1))
    batch_id = await on.batch(1, spec=replace(SPEC, timeout=SECOND))
    await on.claim(session)
    await pause(on, batch_id)
    on.clock.advance(MINUTE)
    await on.stores.jobs.fail_overdue_jobs(grace=SECOND, limit=ALL, term=await on.term())

    assert await on.claim(session) == []
    assert await resume(on, batch_id) == 1
    assert [job.failures for job in await on.claim(session)] == [1]


async def test_a_scheduled_item_is_held_when_its_time_comes(on: Scenario) -> None:
    """It stays scheduled until then, and if the batch is resumed before, it never was held."""
    session = await on.worker(lease=timedelta(hours=1))
    batch_id = await on.batch(2, run_at=on.clock.now() + MINUTE)
    assert await pause(on, batch_id) == 0
    on.clock.advance(MINUTE)
    await on.stores.jobs.stage_jobs(limit=ALL)
    assert await on.claim(session) == []
    # Staging it again finds nothing: no time wakes what is held.
    on.clock.advance(MINUTE)
    assert await on.stores.jobs.stage_jobs(limit=ALL) == frozenset()
    assert await on.claim(session) == []

    assert await resume(on, batch_id) == 2
    assert ordinals(await on.claim(session)) == [0, 1]


async def test_a_held_job_has_no_time(on: Scenario) -> None:
    """A job that had a time, and was ready, is not made ready once more by the stager while it is held."""
    session = await on.worker(lease=timedelta(hours=1))
    batch_id = await on.batch(1, run_at=on.clock.now() + SECOND)
    on.clock.advance(MINUTE)
    await on.stores.jobs.stage_jobs(limit=ALL)
    assert await pause(on, batch_id) == 1

    assert await on.stores.jobs.stage_jobs(limit=ALL) == frozenset()
    assert await on.claim(session) == []


async def test_a_woken_job_is_held_and_no_signal_wakes_a_held_one(on: Scenario) -> None:
    """A signal that comes, or has come, ends the wait of a job and not the pause of its batch."""
    session = await on.worker()
    batch_id = await on.batch(2)
    first, second = await on.claim(session)
    await on.end(session, first, state=JobState.PARKED, park=Park("a", None))
    await pause(on, batch_id)
    await on.stores.signals.send_signal("a", "1")
    await on.end(session, second, state=JobState.PARKED, park=Park("a", None))

    assert await on.claim(session) == []
    assert await resume(on, batch_id) == 2
    assert ordinals(await on.claim(session)) == [0, 1]


async def test_a_pause_lasts_when_the_batch_closes(on: Scenario) -> None:
    """What a retry of a closed batch brings is held as well, until the resume."""
    session = await on.worker()
    batch_id = await on.batch(2)
    jobs = await on.claim(session)
    await pause(on, batch_id)
    await on.end(session, *jobs, state=F)
    assert [one.outcome for one in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.FAILED]

    assert await on.stores.batches.retry_failed(batch_id) == 2
    assert await on.claim(session) == []
    assert await resume(on, batch_id) == 2
    assert ordinals(await on.claim(session)) == [0, 1]


async def test_a_paused_batch_can_be_cancelled(on: Scenario) -> None:
    """Held jobs are cancelled like all that waits, and the pause is over."""
    batch_id = await on.batch(3)
    await pause(on, batch_id)
    await on.stores.batches.cancel_batch(batch_id)

    assert (await on.view(batch_id)).paused_at is None
    assert await on.stores.batches.settle_paused(batch_id, limit=ALL) == 0
    assert await on.stores.batches.settle_cancelled(batch_id, limit=ALL) == 3
    assert [one.outcome for one in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.CANCELLED]


async def test_a_policy_cancels_a_paused_batch(on: Scenario) -> None:
    """Too many failures end the batch, and the pause with it."""
    session = await on.worker()
    batch_id = await on.batch(3, policy=ClosePolicy.fail_fast())
    jobs = await on.claim(session, 1)
    await pause(on, batch_id)
    await on.end(session, *jobs, state=F)

    assert [one.outcome for one in await on.stores.batches.close_batches([batch_id])] == [BatchOutcome.FAILED]
    assert (await on.view(batch_id)).paused_at is None


async def test_one_held_job_can_be_cancelled(on: Scenario) -> None:
    """A single job is taken out, and is not let go with the others."""
    session = await on.worker()
    batch_id = await on.batch(2)
    await pause(on, batch_id)
    held = await on.stores.inspect.list_jobs(batch_id=batch_id)
    await on.stores.control.cancel_job(held[0].id)

    assert await resume(on, batch_id) == 1
    assert [job.id for job in await on.claim(session)] == [held[1].id]


async def test_the_sweep_finishes_a_pause_and_a_resume(on: Scenario) -> None:
    """A process that died behind the first word of either leaves the rest to the leader."""
    session, term = await on.worker(), await on.term()
    batch_id = await on.batch(3)
    await on.stores.batches.pause_batch(batch_id)
    await on.stores.batches.sweep_batches(term=term, seal_timeout=MINUTE, limit=2)
    assert await on.claim(session) == []

    await on.stores.batches.resume_batch(batch_id)
    await on.stores.batches.sweep_batches(term=term, seal_timeout=MINUTE, limit=2)
    assert ordinals(await on.claim(session)) == [0, 1, 2]


async def test_a_former_leader_finishes_no_resume(on: Scenario) -> None:
    """Under a term that is over nothing is let go."""
    session, term = await on.worker(), await on.term()
    batch_id = await on.batch(1)
    await pause(on, batch_id)
    await on.stores.batches.resume_batch(batch_id)
    await on.stores.batches.sweep_batches(term=replace(term, term=term.term + 1), seal_timeout=MINUTE, limit=2)
    assert await on.claim(session) == []


async def test_a_gate_starts_no_held_job_and_counts_right(on: Scenario) -> None:
    """Of a gated queue the others start, under their caps and in their order, and the batch comes back at its place."""
    session = await on.worker()
    spec = replace(SPEC, gate=Gate(key="k", key_limit=2))
    batch_id = await on.batch(4, spec=spec)
    running = await on.admit(session, 1)
    assert await pause(on, batch_id) == 3
    on.clock.advance(SECOND)
    others = await on.enqueue(3, gate=Gate(key="k", key_limit=2))

    # One of the batch runs on, so there is room for one.
    assert [job.id for job in await on.admit(session)] == others[:1]
    await on.end(session, *running)
    assert await resume(on, batch_id) == 3
    assert ordinals(await on.admit(session)) == [1]


async def test_an_in_order_key_stays_with_a_job_that_began(on: Scenario) -> None:
    """A held job that ran before keeps its key; one that never ran gives way."""
    session = await on.worker()
    gate = Gate(key="k", key_limit=1)
    batch_id = await on.batch(2, spec=replace(SPEC, gate=gate))
    [first] = await on.admit(session)
    on.clock.advance(SECOND)
    [other] = await on.enqueue(1, gate=gate)
    assert await pause(on, batch_id) == 1
    await on.end(session, first, state=JobState.READY, charged=True)

    assert await on.admit(session) == []
    assert await resume(on, batch_id) == 2
    [again] = await on.admit(session)
    assert (again.id, again.attempt) == (first.id, 2)
    await pause(on, batch_id)
    await on.end(session, again)
    # The second item never ran: it keeps nobody waiting.
    assert [job.id for job in await on.admit(session)] == [other]


async def test_priorities_are_kept(on: Scenario) -> None:
    """What was held longer than the head start of what is urgent comes back before it; what was not, behind it."""
    bulk, urgent = replace(SPEC, priority=Priority.BULK), head_start(Priority.INTERACTIVE)
    old = await on.batch(1, spec=bulk)
    await pause(on, old)
    on.clock.advance(urgent + SECOND)
    [asked] = await on.enqueue(1, priority=Priority.INTERACTIVE)
    young = await on.batch(1, spec=bulk)
    await pause(on, young)
    await resume(on, young)
    await resume(on, old)

    session = await on.worker()
    assert [job.batch_id or job.id for job in await on.claim(session)] == [old, asked, young]


async def test_a_job_explains_its_pause(on: Scenario) -> None:
    """Whatever it waits for beside: the pause of its batch, with the reason."""
    batch_id = await on.batch(2)
    session = await on.worker()
    [running] = await on.claim(session, 1)
    await on.stores.batches.pause_batch(batch_id, reason="an incident")
    [waiting] = [job.id for job in await on.stores.inspect.list_jobs(batch_id=batch_id) if job.id != running.id]

    for _ in range(2):
        why = await on.gate.explain_job(waiting)
        assert why is not None
        told = (why.reason, why.subject, why.facts)
        assert told == (WaitReason.BATCH_PAUSED, str(batch_id), {"paused_reason": "an incident"})
        await on.stores.batches.settle_paused(batch_id, limit=ALL)
    why = await on.gate.explain_job(running.id)
    assert why is not None
    assert why.reason is WaitReason.RUNNING
