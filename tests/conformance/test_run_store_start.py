"""RunStore.start_run: a run, its graph and its first jobs, once."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from headrace.model.errors import ConflictError
from headrace.model.ids import uuid7
from headrace.model.job import JobState
from headrace.model.limits import Gate
from headrace.model.run import Level, RunState, RunView
from tests.conformance.runs import CONTEXT, GRAPH, Runs, new_run, node_job, success
from tests.conformance.scenario import ARGS, MINUTE, Scenario
from tests.waiting import wait_until


async def test_a_run_is_stored_with_all_that_was_said(on: Scenario, runs: Runs) -> None:
    """Its record reads as it was started, running, with the store's time."""
    before = await runs.start()
    run = new_run(
        version=3, key="k", body_hash="h", rerun_of=before, rerun_from="b", level=Level.WORKFLOW, reason="42 nodes"
    )

    assert await runs.store.start_run(run) == run.id
    assert await runs.run(run.id) == RunView(
        id=run.id,
        workflow="w",
        version=3,
        snapshot="s1",
        state=RunState.RUNNING,
        level=Level.WORKFLOW,
        reason="42 nodes",
        input='{"n": 1}',
        context=CONTEXT,
        output=None,
        error=None,
        key="k",
        rerun_of=before,
        rerun_from="b",
        created_at=on.clock.now(),
        finished_at=None,
    )


async def test_the_first_jobs_are_inserted_with_it(on: Scenario, runs: Runs) -> None:
    """They wait in their queues and name their run and node to whoever claims or reads them."""
    run_id = await runs.start("a", "b")

    claimed = await runs.claim()
    assert [(job.run_id, job.node, job.args, job.attempt) for job in claimed] == [
        (run_id, "a", ARGS, 1),
        (run_id, "b", ARGS, 1),
    ]
    views = [await on.job(job.id) for job in claimed]
    assert [(view.run_id, view.node, view.state) for view in views] == [
        (run_id, "a", JobState.RUNNING),
        (run_id, "b", JobState.RUNNING),
    ]
    held = await on.stores.jobs.claimed_jobs(await runs.session(), queue="default")
    assert [(job.run_id, job.node) for job in held] == [(run_id, "a"), (run_id, "b")]


async def test_the_jobs_of_a_run_keep_it_when_they_are_finished(on: Scenario, runs: Runs) -> None:
    """A finished job names its run and node still."""
    run_id, [job] = await runs.begin("a")
    await runs.done(job)

    view = await on.job(job.id)
    assert (view.state, view.run_id, view.node) == (JobState.SUCCEEDED, run_id, "a")


async def test_the_job_of_a_whole_run_has_no_node(runs: Runs) -> None:
    """It belongs to the run and to none of its nodes."""
    run_id, [job] = await runs.begin(None, spec={"queue": "workflows", "task": "headrace.run"})

    assert (job.run_id, job.node) == (run_id, None)


async def test_jobs_of_no_run_name_none(on: Scenario) -> None:
    """Whatever else is inserted belongs to no run."""
    _, job = await on.start()

    assert (job.run_id, job.node) == (None, None)
    assert ((await on.job(job.id)).run_id, (await on.job(job.id)).node) == (None, None)


async def test_jobs_inserted_by_themselves_may_belong_to_a_run(on: Scenario, runs: Runs) -> None:
    """`insert_jobs` keeps run and node too."""
    run_id = await runs.start()
    await on.stores.jobs.insert_jobs([node_job(run_id, "a")])

    assert list(await runs.live(run_id)) == ["a"]


async def test_first_jobs_wait_for_their_time(on: Scenario, runs: Runs) -> None:
    """A job with a time ahead is scheduled, not ready."""
    run_id = await runs.start("a", spec={"run_at": on.clock.now() + MINUTE})
    assert await runs.claim() == []
    assert (await runs.live(run_id))["a"].state is JobState.SCHEDULED
    on.clock.advance(MINUTE)
    await on.stores.jobs.stage_jobs(limit=10)

    assert [job.node for job in await runs.claim()] == ["a"]


async def test_first_jobs_pass_their_gate(on: Scenario, runs: Runs) -> None:
    """A job with a gate is not to be claimed past it, and admission brings it with its run and node."""
    run_id = await runs.start("a", spec={"gate": Gate(caps=("task:work",))})

    assert await runs.claim() == []
    [job] = await on.admit(await runs.session())
    assert (job.run_id, job.node, job.gated) == (run_id, "a", True)


async def test_a_start_hints_the_queues(on: Scenario, runs: Runs) -> None:
    """Workers of the queues of its first jobs are told."""
    heard: list[str] = []
    await on.stores.notifier.subscribe(heard.append)
    run = new_run()
    run.jobs = (node_job(run.id, "a"), node_job(run.id, "b", queue="mail"))
    await runs.store.start_run(run)

    await wait_until(lambda: {"queue:default", "queue:mail"} <= set(heard))


async def test_starting_again_after_a_lost_answer_changes_nothing(on: Scenario, runs: Runs) -> None:
    """The same run started again, also once its jobs run or are finished, is the one that is stored."""
    run = new_run("a", "b")
    await runs.store.start_run(run)
    first, _ = await runs.claim()
    await runs.done(first, endings=(success("a"),), level=Level.WORKFLOW, reason="why")
    before = await runs.run(run.id)
    on.clock.advance(MINUTE)
    assert await runs.store.start_run(run) == run.id

    assert await runs.run(run.id) == before
    assert await runs.paths(run.id) == ["a"]
    assert await runs.claim() == []
    assert len(await on.stores.inspect.list_jobs()) == 2
    assert len(await runs.store.list_runs()) == 1


async def test_a_key_starts_one_run(on: Scenario, runs: Runs) -> None:
    """With a key that is known for the workflow the id of then is returned and nothing is inserted."""
    first = await runs.start("a", key="k", body_hash="h")
    again = await runs.start("a", key="k", body_hash="h")

    assert again == first
    assert len(await on.stores.inspect.list_jobs()) == 1
    assert [view.id for view in await runs.store.list_runs()] == [first]


async def test_a_keyed_run_may_be_started_again_after_a_lost_answer(runs: Runs) -> None:
    """The same run with its key is no conflict with itself."""
    run = new_run("a", key="k", body_hash="h")

    assert [await runs.store.start_run(run) for _ in range(2)] == [run.id] * 2
    assert len(await runs.claim()) == 1


async def test_a_key_with_another_body_is_a_conflict(on: Scenario, runs: Runs) -> None:
    """ConflictError is raised, and nothing is inserted."""
    first = await runs.start("a", key="k", body_hash="h")

    with pytest.raises(ConflictError):
        await runs.start("a", key="k", body_hash="other")
    assert len(await on.stores.inspect.list_jobs()) == 1
    assert [view.id for view in await runs.store.list_runs()] == [first]


async def test_keys_are_those_of_their_workflow(runs: Runs) -> None:
    """Another workflow has the key to itself; runs without keys are all new."""
    started = [
        await runs.start(workflow="w", key="k", body_hash="h"),
        await runs.start(workflow="v", key="k", body_hash="other"),
        await runs.start(),
        await runs.start(),
    ]

    assert len(set(started)) == 4


async def test_a_key_outlives_the_end_of_its_run(on: Scenario, runs: Runs) -> None:
    """As long as the run is kept its key stands for it, however long ago it ended."""
    run_id = await runs.start(key="k", body_hash="h")
    await runs.store.cancel_run(run_id)
    await runs.sweep(run_id)
    on.clock.advance(timedelta(days=20))

    assert await runs.start(key="k", body_hash="h") == run_id


async def test_starts_at_once_with_one_key_make_one_run(on: Scenario, runs: Runs) -> None:
    """Of many starts at the same moment one is stored; all get its id."""
    started = await asyncio.gather(*(runs.start("a", key="k", body_hash="h") for _ in range(8)))

    assert len(set(started)) == 1
    assert len(await on.stores.inspect.list_jobs()) == 1


async def test_starts_of_one_graph_share_it(runs: Runs) -> None:
    """The snapshot is stored once and read by its hash; what no run has is not there."""
    await asyncio.gather(*(runs.start(snapshot="s1") for _ in range(5)))
    await runs.start(snapshot="s2", graph='{"nodes": [1]}')

    assert [await runs.store.load_graph(snapshot) for snapshot in ("s1", "s2", "s3")] == [GRAPH, '{"nodes": [1]}', None]


async def test_a_run_that_is_not_there(runs: Runs) -> None:
    """Reading it answers with nothing."""
    unknown = uuid4()

    assert await runs.store.get_run(unknown) is None
    assert await runs.store.read_nodes(unknown) == []
    assert await runs.store.live_nodes(unknown) == []


async def test_a_copy_of_a_run_is_another_run(runs: Runs) -> None:
    """What makes a run is its id."""
    run = new_run()
    ids: list[UUID] = [await runs.store.start_run(replace(run, id=new)) for new in (uuid7(), uuid7())]

    assert len(set(ids)) == 2
