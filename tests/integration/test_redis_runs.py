"""Runs on Redis and what only it can get wrong: sizes, parts, and stores that end nodes at the same time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from headrace.model.job import JobState, NewJob
from headrace.model.run import Arrival
from headrace.ports.stores import Stores
from headrace.stores.redis import RedisSite
from headrace.testing.clock import FakeClock
from tests.backends.redis import stores_on
from tests.conformance.runs import Runs, arrival, new_run, node_job, success, with_effects
from tests.conformance.scenario import ALL, ARGS, MINUTE, SPEC, Scenario


@pytest.fixture
def runs(on: Scenario) -> Runs:
    """Return what a test does with runs of workflows, in few words."""
    return Runs(on)


@pytest.fixture
async def real(site: RedisSite) -> AsyncIterator[Stores]:
    """Open stores on the namespace, under the clock of the server."""
    async with stores_on(site, None) as stores:
        yield stores


# Sizes


async def test_one_end_may_set_ten_thousand_jobs_going(runs: Runs) -> None:
    """More jobs, arrivals and endings than the stack of Lua holds go in with the end of one job."""
    run_id, [job] = await runs.begin("m")
    await runs.done(
        job,
        endings=tuple(success(f"e{number}") for number in range(10_000)),
        jobs=tuple(node_job(run_id, f"m[{number}]/a") for number in range(10_000)),
        arrivals=tuple(arrival(run_id, f"j{number}", 1, 1, fired=1) for number in range(10_000)),
    )

    assert await runs.paths(run_id) == [f"e{number}" for number in range(10_000)]
    live = await runs.live(run_id)
    assert set(live) == {f"{name}" for number in range(10_000) for name in (f"m[{number}]/a", f"j{number}")}
    assert [len(await runs.claim()) for _ in range(2)] == [10_000, 10_000]


async def test_many_large_ends_in_one_call_go_in_parts(runs: Runs) -> None:
    """A hundred ends with a thousand jobs each are all applied, in no script that holds up everybody else."""
    nodes = [f"m{number}" for number in range(100)]
    run_id, jobs = await runs.begin(*nodes)
    done = [
        with_effects(job, jobs=tuple(node_job(run_id, f"{job.node}[{number}]/a") for number in range(1_000)))
        for job in jobs
    ]

    assert await runs.complete(*done) == [job.id for job in jobs]
    assert len(await runs.live(run_id)) == 100_000


async def test_ten_thousand_arrive_at_one_join(runs: Runs) -> None:
    """However the ends of its entries are divided among calls, the end of a map starts once, at the last of them."""
    count = 10_000
    run_id, jobs = await runs.begin(*(f"m[{number}]/a" for number in range(count)))
    last, *others = (with_effects(job, arrivals=(arrival(run_id, "m/", count, count, fired=1),)) for job in jobs)
    calls = [others[start : start + 777] for start in range(0, len(others), 777)]
    accepted = await asyncio.gather(*(runs.complete(*call) for call in calls))
    assert sum(map(len, accepted)) == count - 1
    assert list(await runs.live(run_id)) == [jobs[0].node]

    await runs.complete(last)
    assert list(await runs.live(run_id)) == ["m/"]


async def test_large_outputs_are_read_in_several_answers(runs: Runs) -> None:
    """Endings of many megabytes come whole and in order, all of them or those asked for."""
    run_id, [job] = await runs.begin("a")
    output = '"' + "x" * 200_000 + '"'
    paths = [f"n{number}" for number in range(60)]
    await runs.done(job, endings=tuple(success(path, output) for path in paths))

    assert [(end.path, end.output) for end in await runs.store.read_nodes(run_id)] == [(path, output) for path in paths]
    wanted = [*reversed(paths), "unknown"]
    assert [end.path for end in await runs.store.read_nodes(run_id, wanted)] == paths


async def test_large_runs_are_read_in_several_answers(runs: Runs) -> None:
    """Runs with megabytes of input each are listed whole."""
    given = '"' + "x" * 1_000_000 + '"'
    ids = {await runs.start(input=given) for _ in range(12)}

    assert {view.id for view in await runs.store.list_runs() if view.input == given} == ids
    assert await runs.store.final_runs(list(ids)) == {}


async def test_a_large_run_is_cancelled_in_parts(runs: Runs) -> None:
    """Thousands of jobs that wait end in many scripts of one sweep; those that run are asked, however many."""
    run_id = await runs.start(*(f"n{number}" for number in range(3_000)))
    running = await runs.on.claim(await runs.session(), 700)
    await runs.store.cancel_run(run_id)

    assert await runs.swept(limit=1_000) == []
    assert len(await runs.live(run_id)) == 2_000
    assert await runs.swept(limit=ALL) == []
    assert {node.job_id for node in await runs.store.live_nodes(run_id)} == {job.id for job in running}
    await runs.complete(*(with_effects(job, JobState.CANCELLED) for job in running))
    assert await runs.swept(limit=ALL) == [run_id]


# Under the clock of the server


async def test_arrivals_of_many_processes_start_a_join_once(site: RedisSite, real: Stores) -> None:
    """Two stores on one namespace end the nodes before a join at the same time: its job is inserted once."""
    on = Scenario(real, FakeClock())
    run = new_run(*(f"n{number}" for number in range(400)))
    await real.runs.start_run(run)
    session = await on.worker(lease=MINUTE)
    join = node_job(run.id, "j")
    done = [
        with_effects(job, arrivals=(Arrival("j", 400, 200, NewJob(SPEC, ARGS, run_id=run.id, node="j"), fired=1),))
        for job in await on.claim(session)
    ]
    async with stores_on(site, None) as other:
        await asyncio.gather(*(
            stores.jobs.complete_jobs(session, done[start : start + 7])
            for start, stores in zip(range(0, 400, 7), [real, other] * 29, strict=False)
        ))  # fmt: skip

    assert [node.node for node in await real.runs.live_nodes(run.id)] == [join.node]
