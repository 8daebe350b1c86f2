"""RunStore.cancel_run and sweep_runs: nothing of a run starts any more, and it ends when nothing of it runs."""

from __future__ import annotations

import asyncio
from uuid import uuid4

import pytest

from headrace.model.errors import NotFoundError
from headrace.model.job import CancelAnswer, JobState, Park
from headrace.model.run import RunEnding, RunState
from tests.conformance.runs import Runs, arrival, node_job, success
from tests.conformance.scenario import MINUTE, SECOND, Scenario


async def test_a_cancel_is_answered_by_what_the_run_does(runs: Runs) -> None:
    """Requested while it runs, as often as it is asked, too late once it has ended."""
    run_id, [job] = await runs.begin("a")
    ended, [last] = await runs.begin("a")
    await runs.done(last, ending=RunEnding(RunState.SUCCEEDED))

    assert [await runs.store.cancel_run(run_id) for _ in range(2)] == [CancelAnswer.REQUESTED] * 2
    assert (await runs.run(run_id)).state is RunState.CANCELLING
    await runs.done(job)
    await runs.sweep(run_id)
    assert await runs.store.cancel_run(run_id) is CancelAnswer.ALREADY_FINAL
    assert await runs.store.cancel_run(ended) is CancelAnswer.ALREADY_FINAL
    assert (await runs.run(ended)).state is RunState.SUCCEEDED


async def test_a_run_that_is_not_there_is_not_cancelled(runs: Runs) -> None:
    """NotFoundError is raised."""
    with pytest.raises(NotFoundError):
        await runs.store.cancel_run(uuid4())


async def test_what_waits_is_cancelled(on: Scenario, runs: Runs) -> None:
    """Ready, scheduled and parked jobs are final by the sweep, settled already, and the run ends with them."""
    run_id, [parked, woken] = await runs.begin("parked", "done")
    await runs.park(parked, Park("k"))
    await runs.done(woken, jobs=(node_job(run_id, "ready"), node_job(run_id, "later", run_at=on.clock.now() + MINUTE)))
    jobs = [live.job_id for live in await runs.store.live_nodes(run_id)]
    await runs.store.cancel_run(run_id)
    on.clock.advance(SECOND)
    await runs.sweep(run_id)

    view = await runs.run(run_id)
    assert (view.state, view.finished_at, view.output, view.error) == (RunState.CANCELLED, on.clock.now(), None, None)
    assert await on.states(jobs) == [JobState.CANCELLED] * 3
    assert (await on.job(jobs[0])).finished_at == on.clock.now()
    assert await runs.unsettled() == []
    assert await runs.store.live_nodes(run_id) == []


async def test_a_cancelled_run_wakes_no_one(on: Scenario, runs: Runs) -> None:
    """Signals and times that come later make nothing of it ready."""
    run_id, [a, b] = await runs.begin("a", "b")
    await runs.park(a, Park("k"))
    await runs.park(b, Park(None, MINUTE))
    await runs.store.cancel_run(run_id)
    await runs.sweep(run_id)
    await on.stores.signals.send_signal("k", "1")
    on.clock.advance(MINUTE)

    assert await on.stores.jobs.stage_jobs(limit=10) == frozenset()
    assert await runs.claim() == []


async def test_what_runs_is_asked_to_stop(on: Scenario, runs: Runs) -> None:
    """The worker hears of it with its next heartbeat, and the run ends when the last job has."""
    run_id, [a, b] = await runs.begin("a", "b")
    await runs.store.cancel_run(run_id)
    assert await runs.swept(limit=10) == []
    renewal = await on.stores.sessions.renew_session(await runs.session(), lease=MINUTE, stats={})
    assert set(renewal.cancel_jobs) == {a.id, b.id}

    await runs.lose(a, JobState.READY)
    assert (await on.job(a.id)).state is JobState.CANCELLED
    assert await runs.swept(limit=10) == []
    assert (await runs.run(run_id)).state is RunState.CANCELLING
    await runs.done(b, JobState.CANCELLED, endings=(success("b"),))
    await runs.sweep(run_id)
    assert await runs.paths(run_id) == ["b"]


async def test_nothing_is_inserted_meanwhile(on: Scenario, runs: Runs) -> None:
    """From the cancel on, before any sweep, ends set nothing going."""
    run_id, [a] = await runs.begin("a")
    await runs.store.cancel_run(run_id)
    await runs.done(
        a,
        endings=(success("a"),),
        arrivals=(arrival(run_id, "j", 1, 1, fired=1), arrival(run_id, "k", 1, 1)),
        jobs=(node_job(run_id, "b"),),
        ending=RunEnding(RunState.SUCCEEDED, "1"),
    )
    await runs.sweep(run_id)

    assert (await runs.run(run_id)).output is None
    assert len(await on.stores.inspect.list_jobs()) == 1
    assert await runs.paths(run_id) == ["a"]


async def test_what_comes_back_meanwhile_is_cancelled_by_a_later_sweep(on: Scenario, runs: Runs) -> None:
    """A job that went back before it was asked to stop does not run again."""
    run_id, [a] = await runs.begin("a")
    await runs.store.cancel_run(run_id)
    await runs.lose(a, JobState.SCHEDULED, delay=MINUTE, charged=True)
    await runs.sweep(run_id)

    assert (await on.job(a.id)).state is JobState.CANCELLED


async def test_a_sweep_cancels_no_more_than_its_limit(runs: Runs) -> None:
    """Of each run; the next one goes on."""
    run_id = await runs.start(*[f"n{number}" for number in range(5)])
    await runs.store.cancel_run(run_id)
    left = []
    for _ in range(2):
        assert await runs.store.sweep_runs(limit=2) == ([], True)
        left.append(len(await runs.live(run_id)))

    assert left == [3, 1]
    assert await runs.store.sweep_runs(limit=2) == ([run_id], False)


async def test_a_sweep_says_whether_more_waits(runs: Runs) -> None:
    """Of any of the runs; what only runs does not count, nor a run that ended with as many as the limit."""
    running, _ = await runs.begin("a", "b", "c")
    exact, long = await runs.start("a", "b"), await runs.start("a", "b", "c")
    await runs.store.cancel_run(running)
    assert await runs.store.sweep_runs(limit=2) == ([], False)
    await runs.store.cancel_run(exact)
    assert await runs.store.sweep_runs(limit=2) == ([exact], False)
    await runs.store.cancel_run(long)
    assert await runs.store.sweep_runs(limit=2) == ([], True)
    assert await runs.store.sweep_runs(limit=2) == ([long], False)


async def test_runs_without_jobs_end_at_once(runs: Runs) -> None:
    """One sweep may end many; each is named once."""
    ids = [await runs.start() for _ in range(3)]
    for run_id in ids:
        await runs.store.cancel_run(run_id)

    assert sorted(await runs.swept(limit=10)) == sorted(ids)
    assert await runs.swept(limit=10) == []


async def test_other_runs_and_jobs_are_left_alone(on: Scenario, runs: Runs) -> None:
    """Only what belongs to a run that is being cancelled is touched."""
    plain = await on.enqueue(2)
    other = await runs.start("a", "b")
    run_id = await runs.start("a")
    await runs.store.cancel_run(run_id)
    await runs.sweep(run_id)

    assert (await runs.run(other)).state is RunState.RUNNING
    assert set(await runs.live(other)) == {"a", "b"}
    assert await on.states(plain) == [JobState.READY] * 2


async def test_a_sweep_without_cancels_does_nothing(runs: Runs) -> None:
    """Runs that run are not touched."""
    run_id = await runs.start("a")

    assert await runs.swept(limit=10) == []
    assert set(await runs.live(run_id)) == {"a"}


async def test_sweeps_at_once_end_a_run_once(runs: Runs) -> None:
    """Of several sweeps at the same moment one names the run."""
    run_id = await runs.start(*[f"n{number}" for number in range(20)])
    await runs.store.cancel_run(run_id)
    answers = await asyncio.gather(*(runs.swept(limit=10) for _ in range(4)))
    named = [ended for answer in answers for ended in answer]
    for _ in range(4):
        named += await runs.swept(limit=10)

    assert named == [run_id]
    assert await runs.unsettled() == []


async def test_a_cancelled_run_that_was_claimed_from_goes_on_to_its_end(runs: Runs) -> None:
    """Jobs claimed between the cancel and the sweep are asked to stop like those before."""
    run_id = await runs.start("a")
    await runs.store.cancel_run(run_id)
    claimed = await runs.claim()
    await runs.swept(limit=10)
    for job in claimed:
        await runs.lose(job, JobState.READY)
    if claimed:
        await runs.sweep(run_id)

    assert (await runs.run(run_id)).state is RunState.CANCELLED
