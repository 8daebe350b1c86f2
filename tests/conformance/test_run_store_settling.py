"""RunStore.unsettled_jobs and settle_jobs: jobs of runs that the store ended by itself."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from headrace.model.job import JobError, JobState, Park
from headrace.model.run import Effects, Level, NodeEnding, NodeState, RunEnding, RunState, Unsettled
from headrace.model.stats import Retention
from tests.conformance.runs import Runs, arrival, node_job, success
from tests.conformance.scenario import ALL, DAY, LEASE, MINUTE, SECOND, Scenario

ERROR = JobError("ValueError", "no such thing", "Traceback …")

#: Ends the job of node "a" of a new run and returns (run, job, final state, kind of the error, attempt).
Ended = tuple[UUID, UUID, JobState, str | None, int]
Way = Callable[[Scenario, Runs], Awaitable[Ended]]


async def cancel_ready(on: Scenario, runs: Runs) -> Ended:
    """A ready job is cancelled."""
    run_id = await runs.start("a")
    [live] = await runs.store.live_nodes(run_id)
    await on.stores.control.cancel_job(live.job_id)
    return run_id, live.job_id, JobState.CANCELLED, None, 0


async def cancel_scheduled(on: Scenario, runs: Runs) -> Ended:
    """A scheduled job is cancelled."""
    run_id = await runs.start("a", spec={"run_at": on.clock.now() + MINUTE})
    [live] = await runs.store.live_nodes(run_id)
    await on.stores.control.cancel_job(live.job_id)
    return run_id, live.job_id, JobState.CANCELLED, None, 0


async def cancel_parked(on: Scenario, runs: Runs) -> Ended:
    """A parked job is cancelled."""
    run_id, [job] = await runs.begin("a")
    await runs.park(job, Park("k"))
    await on.stores.control.cancel_job(job.id)
    return run_id, job.id, JobState.CANCELLED, None, 1


async def go_back_cancelled(on: Scenario, runs: Runs) -> Ended:
    """A job whose cancel was requested would go back."""
    run_id, [job] = await runs.begin("a")
    await on.stores.control.cancel_job(job.id)
    await runs.lose(job, JobState.READY, error=ERROR)
    return run_id, job.id, JobState.CANCELLED, ERROR.kind, 1


async def wait_cancelled(on: Scenario, runs: Runs) -> Ended:
    """A job whose cancel was requested would wait for its retry."""
    run_id, [job] = await runs.begin("a")
    await on.stores.control.cancel_job(job.id)
    await runs.lose(job, JobState.SCHEDULED, delay=MINUTE, charged=True, error=ERROR)
    return run_id, job.id, JobState.CANCELLED, ERROR.kind, 1


async def park_cancelled(on: Scenario, runs: Runs) -> Ended:
    """A job whose cancel was requested would park."""
    run_id, [job] = await runs.begin("a")
    await on.stores.control.cancel_job(job.id)
    await runs.park(job, Park("k", MINUTE))
    return run_id, job.id, JobState.CANCELLED, None, 1


async def crash_alone(_on: Scenario, runs: Runs) -> Ended:
    """A job crashes alone for the third time."""
    run_id, [job] = await runs.begin("a")
    for _ in range(2):
        await runs.lose(job, JobState.READY, lone_crash=True)
        [job] = await runs.claim()
    await runs.lose(job, JobState.READY, lone_crash=True)
    return run_id, job.id, JobState.FAILED, "poison", 3


async def fail(_on: Scenario, runs: Runs) -> Ended:
    """A job fails, and its worker says nothing of what that sets going."""
    run_id, [job] = await runs.begin("a")
    await runs.lose(job, JobState.FAILED, error=ERROR, charged=True)
    return run_id, job.id, JobState.FAILED, ERROR.kind, 1


async def succeed(_on: Scenario, runs: Runs) -> Ended:
    """A job succeeds, and its worker says nothing of what that sets going."""
    run_id, [job] = await runs.begin("a")
    await runs.lose(job, JobState.SUCCEEDED, result="1")
    return run_id, job.id, JobState.SUCCEEDED, None, 1


async def start_elsewhere(on: Scenario, runs: Runs, **spec: Any) -> tuple[UUID, UUID]:
    """Start a run and let a session of a usual lease claim its job; return both ids."""
    run_id = await runs.start("a", spec=spec)
    [job] = await on.claim(await on.worker())
    return run_id, job.id


async def lose_worker(on: Scenario, runs: Runs) -> Ended:
    """A job that may run once only loses its worker."""
    run_id, job_id = await start_elsewhere(on, runs, at_most_once=True)
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    return run_id, job_id, JobState.FAILED, "worker_lost", 1


async def lose_worker_cancelled(on: Scenario, runs: Runs) -> Ended:
    """A job whose cancel was requested loses its worker."""
    run_id, job_id = await start_elsewhere(on, runs)
    await on.stores.control.cancel_job(job_id)
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    return run_id, job_id, JobState.CANCELLED, "worker_lost", 1


async def run_too_long(on: Scenario, runs: Runs) -> Ended:
    """A job without failures left is overdue."""
    run_id, [job] = await runs.begin("a", spec={"timeout": SECOND, "max_attempts": 1})
    on.clock.advance(MINUTE)
    await on.stores.jobs.fail_overdue_jobs(grace=SECOND, limit=10, term=await on.term())
    return run_id, job.id, JobState.FAILED, "timeout", 1


async def run_too_long_cancelled(on: Scenario, runs: Runs) -> Ended:
    """A job whose cancel was requested is overdue."""
    run_id, [job] = await runs.begin("a", spec={"timeout": SECOND})
    await on.stores.control.cancel_job(job.id)
    on.clock.advance(MINUTE)
    await on.stores.jobs.fail_overdue_jobs(grace=SECOND, limit=10, term=await on.term())
    return run_id, job.id, JobState.CANCELLED, "timeout", 1


WAYS: list[Way] = [
    cancel_ready, cancel_scheduled, cancel_parked, go_back_cancelled, wait_cancelled, park_cancelled, crash_alone, fail,
    succeed, lose_worker, lose_worker_cancelled, run_too_long, run_too_long_cancelled,
]  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
async def test_whatever_ends_without_effects_is_unsettled(on: Scenario, runs: Runs, way: Way) -> None:
    """It is listed once, as it ended, until it is settled."""
    run_id, job_id, state, kind, attempt = await way(on, runs)

    [job] = await runs.unsettled()
    assert (job.job_id, job.run_id, job.node, job.state, job.attempt) == (job_id, run_id, "a", state, attempt)
    assert (job.error.kind if job.error else None) == kind
    assert await runs.unsettled() == [job]
    assert (await on.job(job_id)).state is state


@pytest.mark.parametrize("way", WAYS)
async def test_what_was_unsettled_is_settled_once(on: Scenario, runs: Runs, way: Way) -> None:
    """Its effects are applied by the first call; then it is not listed, and a second call does nothing."""
    run_id, job_id, *_ = await way(on, runs)
    first = Effects(run_id, (success("a"),), (arrival(run_id, "j", 2, 1, fired=1),), (node_job(run_id, "b"),))
    second = Effects(run_id, (success("c"),), jobs=(node_job(run_id, "c"),))

    assert await runs.store.settle_jobs([(job_id, first)]) == [job_id]
    assert await runs.unsettled() == []
    assert await runs.store.settle_jobs([(job_id, second)]) == []
    assert await runs.paths(run_id) == ["a"]
    assert set(await runs.live(run_id)) == {"j", "b"}


async def test_what_is_unsettled_has_its_error(runs: Runs) -> None:
    """As the attempt reported it."""
    run_id, [job] = await runs.begin("a")
    await runs.lose(job, JobState.FAILED, error=ERROR)

    assert await runs.unsettled() == [Unsettled(job.id, run_id, "a", JobState.FAILED, ERROR, 1)]


async def test_the_job_of_a_whole_run_is_unsettled_without_a_node(runs: Runs) -> None:
    """Its node is None."""
    run_id, [job] = await runs.begin(None)
    await runs.lose(job, JobState.FAILED)

    [unsettled] = await runs.unsettled()
    assert (unsettled.run_id, unsettled.node) == (run_id, None)


async def test_the_oldest_are_listed_first(on: Scenario, runs: Runs) -> None:
    """In the order of their ends, and no more than asked for."""
    _, jobs = await runs.begin("a", "b", "c")
    for job in reversed(jobs):
        await runs.lose(job)
        on.clock.advance(SECOND)

    assert [job.node for job in await runs.unsettled()] == ["c", "b", "a"]
    assert [job.node for job in await runs.store.unsettled_jobs(limit=2)] == ["c", "b"]


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED])
async def test_what_ends_with_effects_is_settled(runs: Runs, state: JobState) -> None:
    """Also when they are empty."""
    _, [a, b] = await runs.begin("a", "b")
    await runs.done(a, state)
    await runs.done(b, state, endings=(NodeEnding("b", NodeState.FAILED),))

    assert await runs.unsettled() == []


async def test_what_is_unsettled_is_not_pruned(on: Scenario, runs: Runs) -> None:
    """However old it is: what its end sets going would be lost with it. Then it goes like any other."""
    run_id, [job] = await runs.begin("a")
    await runs.lose(job)
    on.clock.advance(365 * DAY)
    assert (await on.stores.jobs.prune_jobs(Retention(), limit=10)).total == 0
    assert [unsettled.job_id for unsettled in await runs.unsettled()] == [job.id]

    await runs.store.settle_jobs([(job.id, Effects(run_id))])
    assert (await on.stores.jobs.prune_jobs(Retention(), limit=10)).total == 1


async def test_jobs_without_a_run_are_never_unsettled(on: Scenario, runs: Runs) -> None:
    """However they end."""
    await on.enqueue(3)
    session = await on.worker()
    failed, cancelled, lost = await on.claim(session)
    await on.end(session, failed, state=JobState.FAILED)
    await on.stores.control.cancel_job(cancelled.id)
    await on.end(session, cancelled, state=JobState.READY)
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)
    await on.stores.control.cancel_job(lost.id)

    assert await runs.unsettled() == []


async def test_what_goes_back_is_not_unsettled(on: Scenario, runs: Runs) -> None:
    """A job that is retried, released, parked or rescued has not ended."""
    await start_elsewhere(on, runs)
    _, [a, b, c] = await runs.begin("a", "b", "c")
    await runs.lose(a, JobState.SCHEDULED, charged=True, delay=MINUTE)
    await runs.lose(b, JobState.READY)
    await runs.park(c, Park("k"))
    on.clock.advance(LEASE)
    await on.stores.jobs.rescue_jobs(limit=10)

    assert await runs.unsettled() == []


async def test_only_what_is_unsettled_is_settled(on: Scenario, runs: Runs) -> None:
    """A live job, one that ended with effects, one of no run and one that is not there are left out."""
    run_id, [live, done, lost] = await runs.begin("live", "done", "lost")
    await runs.done(done)
    await runs.lose(lost)
    [plain] = await on.enqueue()
    await on.stores.control.cancel_job(plain)

    asked = [live.id, done.id, plain, uuid4(), lost.id]
    settled = await runs.store.settle_jobs(
        [(job_id, Effects(run_id, (success(f"p{number}"),))) for number, job_id in enumerate(asked)]
    )
    assert settled == [lost.id]
    assert await runs.paths(run_id) == ["p4"]
    assert await runs.store.settle_jobs([]) == []


async def test_settling_does_all_that_an_end_does(on: Scenario, runs: Runs) -> None:
    """Endings, arrivals, jobs, level and the end of the run; sums go on from those of other ends."""
    run_id, [a, b] = await runs.begin("a", "b")
    await runs.done(a, arrivals=(arrival(run_id, "j", 2, 2, fired=1),))
    await runs.lose(b, JobState.FAILED, error=ERROR)
    await runs.store.settle_jobs(
        [(b.id, Effects(run_id, arrivals=(arrival(run_id, "j", 2, 2),), level=Level.WORKFLOW, reason="why"))]
    )
    [j] = await runs.claim(queue="nodes")
    assert ((await runs.run(run_id)).level, (await runs.run(run_id)).reason) == (Level.WORKFLOW, "why")
    await runs.lose(j, JobState.FAILED, error=ERROR)
    await runs.store.settle_jobs([(j.id, Effects(run_id, ending=RunEnding(RunState.FAILED, None, ERROR)))])

    view = await runs.run(run_id)
    assert (view.state, view.error, view.finished_at) == (RunState.FAILED, ERROR, on.clock.now())


async def test_many_jobs_of_two_runs_are_settled_together(runs: Runs) -> None:
    """Each in its own run."""
    first, [a1, b1] = await runs.begin("a", "b")
    second, [a2] = await runs.begin("a")
    for job in (a1, b1, a2):
        await runs.lose(job)
    settled = await runs.store.settle_jobs(
        [
            (a1.id, Effects(first, (success("a"),), (arrival(first, "j", 2, 2, fired=1),))),
            (a2.id, Effects(second, (success("a"),), (arrival(second, "j", 2, 2, fired=1),))),
            (b1.id, Effects(first, (success("b"),), (arrival(first, "j", 2, 2, fired=1),))),
        ]
    )

    assert sorted(settled) == sorted([a1.id, b1.id, a2.id])
    assert (await runs.paths(first), await runs.paths(second)) == (["a", "b"], ["a"])
    assert (list(await runs.live(first)), list(await runs.live(second))) == (["j"], [])


async def test_settling_at_once_applies_once(runs: Runs) -> None:
    """Several settlers at the same moment insert each job once."""
    run_id, [job] = await runs.begin("a")
    await runs.lose(job)
    answers = await asyncio.gather(
        *(
            runs.store.settle_jobs([(job.id, Effects(run_id, jobs=(node_job(run_id, f"b{number}"),)))])
            for number in range(6)
        )
    )

    assert sorted(answers) == [[]] * 5 + [[job.id]]
    assert len(await runs.store.live_nodes(run_id)) == 1


@pytest.mark.parametrize("over", ["ended", "cancelling", "cancelled"])
async def test_jobs_of_runs_that_do_not_run_are_settled_too(on: Scenario, runs: Runs, over: str) -> None:
    """Their endings are kept and nothing is inserted: they do not stay unsettled for ever."""
    run_id, [a, b] = await runs.begin("a", "b")
    if over == "ended":
        await runs.done(b, ending=RunEnding(RunState.FAILED, None, ERROR))
    else:
        await runs.store.cancel_run(run_id)
        await runs.done(b)
    await on.stores.control.cancel_job(a.id)
    await runs.lose(a, JobState.READY)
    if over == "cancelled":
        await runs.sweep(run_id)
    before = await runs.run(run_id)

    [unsettled] = await runs.unsettled()
    effects = Effects(run_id, (success("a"),), jobs=(node_job(run_id, "c"),), ending=RunEnding(RunState.SUCCEEDED, "1"))
    assert await runs.store.settle_jobs([(unsettled.job_id, effects)]) == [a.id]
    assert await runs.unsettled() == []
    assert await runs.paths(run_id) == ["a"]
    assert await runs.store.live_nodes(run_id) == []
    assert await runs.run(run_id) == before


async def test_jobs_of_runs_that_are_gone_are_settled_too(on: Scenario, runs: Runs) -> None:
    """Nothing is kept for a run that was pruned, and its job does not stay unsettled."""
    run_id, [a, b] = await runs.begin("a", "b")
    await runs.done(a, ending=RunEnding(RunState.SUCCEEDED))
    await runs.lose(b)
    on.clock.advance(DAY)
    assert await runs.store.prune_runs(older_than=timedelta(hours=1), limit=ALL) == 1

    effects = Effects(run_id, (success("b"),), jobs=(node_job(run_id, "c"),))
    await runs.store.settle_jobs([(b.id, effects)])
    assert await runs.unsettled() == []
    assert await runs.store.read_nodes(run_id) == []
    assert await runs.claim() == []
