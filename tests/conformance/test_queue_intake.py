"""What is stored of a queue's intake and alarm, and what counts as waiting in it."""

from __future__ import annotations

from datetime import timedelta

from headrace.model.backlog import Alarm, QueueState
from headrace.model.job import JobState, NewJob
from tests.conformance.scenario import ARGS, MINUTE, SECOND, SPEC, Scenario


async def test_ready_and_scheduled_jobs_wait_and_no_others(on: Scenario) -> None:
    """What runs or has ended does not wait; what is ready or due later does, in its own queue alone."""
    session = await on.worker()
    await on.enqueue(5)
    await on.enqueue(2, queue="other")
    await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=on.clock.now() + MINUTE) for _ in range(3)])
    count = on.stores.inspect.waiting_jobs
    assert await count("default", at_most=100) == 8
    running, ended = await on.claim(session, 2)
    await on.end(session, ended)
    assert await count("default", at_most=100) == 6
    await on.end(session, running, state=JobState.SCHEDULED, delay=SECOND, charged=True)
    assert await count("default", at_most=100) == 7
    assert await count("other", at_most=100) == 2
    assert await count("nobody", at_most=100) == 0


async def test_waiting_jobs_are_counted_no_further_than_asked(on: Scenario) -> None:
    """The count stops at its bound, wherever the jobs stand."""
    await on.enqueue(5)
    await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=on.clock.now() + MINUTE) for _ in range(5)])
    for bound in (1, 4, 7, 10):
        assert await on.stores.inspect.waiting_jobs("default", at_most=bound) == bound
    assert await on.stores.inspect.waiting_jobs("default", at_most=11) == 10


async def test_live_jobs_are_counted_by_state(on: Scenario) -> None:
    """All that is not final is counted under its state, in its own queue alone."""
    session = await on.worker()
    await on.enqueue(4)
    await on.enqueue(1, queue="other")
    _, ended = await on.claim(session, 2)
    await on.end(session, ended)
    await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_at=on.clock.now() + MINUTE)])
    counts = await on.stores.inspect.live_jobs("default")
    found = {state: count for state, count in counts.items() if count}
    assert found == {JobState.READY: 2, JobState.RUNNING: 1, JobState.SCHEDULED: 1}
    assert not any((await on.stores.inspect.live_jobs("nobody")).values())


async def test_a_closed_queue_stays_closed_until_it_is_opened(on: Scenario) -> None:
    """Closing, pausing and alarms are apart: none changes the others, and stats show them all."""
    control = on.stores.control
    assert await control.queue_states() == {}
    await control.set_queue_closed("llm", closed=True)
    await control.set_queue_paused("llm", paused=True, reason="quota")
    await control.set_alarms({"llm": Alarm(3, MINUTE), "mail": Alarm(age=SECOND)})
    states = await control.queue_states()
    assert states["llm"] == QueueState(True, "quota", True, Alarm(3, MINUTE))
    assert states["mail"] == QueueState(alarm=Alarm(age=SECOND))
    [stats] = [one for one in await on.stores.inspect.queue_stats() if one.name == "llm"]
    assert (stats.closed, stats.paused, stats.alarm) == (True, True, Alarm(3, MINUTE))
    await control.set_queue_paused("llm", paused=False)
    await control.set_queue_closed("llm", closed=False)
    await control.set_alarms({"llm": Alarm()})
    assert (await control.queue_states())["llm"] == QueueState()


async def test_a_closed_queue_works_its_jobs_off(on: Scenario) -> None:
    """Closing stops nobody who claims, and a retry of an accepted job goes back into the queue."""
    session = await on.worker()
    await on.enqueue(2)
    await on.stores.control.set_queue_closed("default", closed=True)
    first, second = await on.claim(session)
    await on.end(session, first)
    await on.end(session, second, state=JobState.SCHEDULED, delay=SECOND, charged=True)
    on.clock.advance(2 * SECOND)
    await on.stores.jobs.stage_jobs(limit=10)
    assert [job.id for job in await on.claim(session)] == [second.id]


async def test_stats_tell_a_backlog_that_is_an_alarm(on: Scenario) -> None:
    """A queue is alarmed from its size or its oldest ready job on, and not before."""
    await on.stores.control.set_alarms({"default": Alarm(3), "old": Alarm(age=MINUTE)})
    await on.enqueue(2)
    await on.enqueue(1, queue="old")

    async def alarmed() -> set[str]:
        return {one.name for one in await on.stores.inspect.queue_stats() if one.alarmed}

    assert await alarmed() == set()
    await on.enqueue(1)
    assert await alarmed() == {"default"}
    on.clock.advance(MINUTE + timedelta(seconds=1))
    assert await alarmed() == {"default", "old"}
