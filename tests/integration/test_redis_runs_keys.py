"""Keys of runs on Redis: none outlives what it is about, and none is made for what is gone."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from headrace.model.job import Completion, JobState, NewJob, Park
from headrace.model.limits import Gate
from headrace.model.run import Effects, RunEnding, RunState
from headrace.model.stats import Retention
from headrace.stores.redis import RedisSite
from headrace.stores.redis.connection import Server
from tests.conformance.runs import Runs, arrival, node_job, success
from tests.conformance.scenario import ALL, ARGS, DAY, MINUTE, SECOND, SPEC, Scenario
from tests.integration.test_redis_scripts import LASTING, keys_of

NOTHING = timedelta()


@pytest.fixture
def runs(on: Scenario) -> Runs:
    """Return what a test does with runs of workflows, in few words."""
    return Runs(on)


async def test_nothing_is_left_of_runs_that_are_gone(on: Scenario, runs: Runs, server: Server, site: RedisSite) -> None:
    """Whatever became of runs and their jobs: once their retention is over, no key holds a trace of them."""
    await use_everything(on, runs)
    await on.stores.sessions.close_session(await runs.session())
    assert await on.stores.runs.unsettled_jobs(limit=ALL)
    await settle_all(runs)
    on.clock.advance(90 * DAY)
    for _ in range(3):
        await on.stores.jobs.rescue_jobs(limit=100)
        await settle_all(runs)
    on.clock.advance(90 * DAY)
    assert await on.stores.runs.prune_runs(older_than=DAY, limit=ALL) == 4
    assert await on.stores.signals.prune_signals(older_than=DAY, limit=ALL) == 2
    for _ in range(5):
        await on.stores.jobs.prune_jobs(Retention(NOTHING, NOTHING, NOTHING, NOTHING), limit=1_000)

    left = await keys_of(server, site)
    assert {name for name in left if name.partition(":")[0] not in LASTING} == set()
    assert not {name for name in left if name.startswith(("session:", "queues", "key:"))}


async def use_everything(on: Scenario, runs: Runs) -> None:
    """Let runs of all kinds come and end in all ways: succeeded, failed, cancelled, with jobs that outlive them."""
    first, [a, b, c] = await runs.begin("a", "b", "c", key="k", body_hash="h")
    await runs.done(a, endings=(success("a"),), arrivals=(arrival(first, "j", 3, 3, fired=1),))
    await runs.park(b, Park("go", DAY))
    await runs.park(c, Park("never"))
    for key in ("go", "early"):
        await on.stores.signals.send_signal(key, "1")
    [b] = await runs.claim()
    await runs.done(b, ending=RunEnding(RunState.SUCCEEDED, "1"))
    await on.stores.control.cancel_job(c.id)
    await outlive_a_run(on, runs)
    for nodes in (("a", "b"), ()):
        run_id = await runs.start(*nodes)
        await on.claim(await on.worker(lease=SECOND), 1)
        await runs.store.cancel_run(run_id)
        await runs.swept(limit=100)
        on.clock.advance(MINUTE)
        await on.stores.jobs.rescue_jobs(limit=100)
        if nodes:
            await runs.sweep(run_id)


async def outlive_a_run(on: Scenario, runs: Runs) -> None:
    """Let a run fail whose other jobs are cancelled, or park at the gate and fail, after that."""
    gate = Gate(fair_key="a", key="k", key_limit=1, caps=("task:x",))
    run_id, [job] = await runs.begin("a")
    jobs = (node_job(run_id, "b", gate=gate, queue="gated"), node_job(run_id, "c", queue="other"))
    await runs.done(job, jobs=jobs, ending=RunEnding(RunState.FAILED))
    [parked] = await on.admit(await runs.session(), queue="gated")
    await runs.park(parked, Park("later", MINUTE))
    await on.stores.control.cancel_job(jobs[1].id)
    on.clock.advance(MINUTE)
    await on.stores.jobs.stage_jobs(limit=100)
    [woken] = await on.admit(await runs.session(), queue="gated")
    await runs.lose(woken)


async def settle_all(runs: Runs) -> None:
    """Settle all that is unsettled, with endings only."""
    settled = [(job.job_id, Effects(job.run_id, (success(job.node or ""),))) for job in await runs.unsettled()]
    assert await runs.store.settle_jobs(settled) == [job_id for job_id, _ in settled]


async def test_effects_in_a_run_that_is_gone_leave_no_key(
    on: Scenario, runs: Runs, server: Server, site: RedisSite
) -> None:
    """The end of a job whose run was pruned, or never was, is an end and nothing else."""
    run_id = uuid4()
    await on.stores.jobs.insert_jobs([NewJob(SPEC, ARGS, run_id=run_id, node=node) for node in "ab"])
    [a, b] = await runs.claim()
    before = await keys_of(server, site)
    effects = Effects(
        run_id, (success("a"),), (arrival(run_id, "j", 2, 1, fired=1),), (node_job(run_id, "c"),),
        ending=RunEnding(RunState.SUCCEEDED, "1"),
    )  # fmt: skip
    await runs.complete(Completion(a.id, 1, JobState.SUCCEEDED, effects=effects))
    await runs.lose(b)
    assert await runs.store.settle_jobs([(b.id, effects)]) == [b.id]
    await runs.store.save_nodes(run_id, (), job_id=b.id, attempt=1, session=await runs.session())

    assert await keys_of(server, site) - before <= {"ended:succeeded:default", "ended:failed:default"}


async def test_sums_go_with_the_end_of_their_run(runs: Runs, server: Server, site: RedisSite) -> None:
    """What was waited for is forgotten when a run ends, long before the run is."""
    run_id, [a, b] = await runs.begin("a", "b")
    await runs.done(a, arrivals=(arrival(run_id, "j", 2, 2, fired=1),))
    assert f"run:{run_id.hex}:joins" in await keys_of(server, site)
    await runs.done(b, ending=RunEnding(RunState.SUCCEEDED, "1"))

    assert f"run:{run_id.hex}:joins" not in await keys_of(server, site)


async def test_a_snapshot_stays_while_anything_uses_it(on: Scenario, runs: Runs) -> None:
    """The graph of two runs goes with the later one; that of a definition stays."""
    for _ in range(2):
        run_id = await runs.start(snapshot="s", graph="1")
        await runs.start(snapshot="defined", graph="2")
        await runs.store.cancel_run(run_id)
        await runs.sweep(run_id)
        on.clock.advance(DAY)
    await on.stores.workflows.save_workflow("w", "2", "defined")

    kept: list[str | None] = []
    for days in (2, 0):
        assert await runs.store.prune_runs(older_than=timedelta(days=days), limit=1) == 1
        kept.append(await runs.store.load_graph("s"))
    assert kept == ["1", None]
    assert await runs.store.load_graph("defined") == "2"
