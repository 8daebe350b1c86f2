"""RunStore: reading runs, their nodes and their live jobs."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest

from headrace.model.job import JobState, Park
from headrace.model.run import LiveNode, RunEnding, RunState, RunView
from headrace.stores.memory import open_memory_stores
from tests.conformance.runs import Runs, node_job, success
from tests.conformance.scenario import MINUTE, SECOND, Scenario


async def test_runs_are_listed_the_newest_first(on: Scenario, runs: Runs) -> None:
    """In the order of their starts, backwards, and no more than asked for."""
    started = []
    for _ in range(4):
        started.append(await runs.start())
        on.clock.advance(SECOND)

    assert [view.id for view in await runs.store.list_runs()] == started[::-1]
    assert [view.id for view in await runs.store.list_runs(limit=2)] == started[:1:-1]


async def test_runs_are_listed_by_workflow_and_state(on: Scenario, runs: Runs) -> None:
    """Either, both or neither restrict the list; it says of each what `get_run` says."""
    first, [job] = await runs.begin("a", workflow="w")
    await runs.done(job, ending=RunEnding(RunState.SUCCEEDED, "1"))
    on.clock.advance(SECOND)
    second = await runs.start(workflow="w")
    on.clock.advance(SECOND)
    third = await runs.start(workflow="v")
    await runs.store.cancel_run(third)

    async def found(workflow: str | None = None, state: RunState | None = None) -> list[object]:
        return [view.id for view in await runs.store.list_runs(workflow=workflow, state=state)]

    assert await found("w") == [second, first]
    assert await found(state=RunState.SUCCEEDED) == [first]
    assert await found("v", RunState.CANCELLING) == [third]
    assert await found("w", RunState.RUNNING) == [second]
    assert await found("v", RunState.RUNNING) == []
    assert await found("x") == []
    assert (await runs.store.list_runs(state=RunState.SUCCEEDED))[0] == await runs.run(first)


async def test_a_run_is_found_by_its_key(runs: Runs) -> None:
    """A key belongs to a workflow; runs without one, and those of other workflows, are not found by it."""
    first = await runs.start(workflow="w", key="order-7", body_hash="a")
    await runs.start(workflow="w")
    other = await runs.start(workflow="v", key="order-7", body_hash="a")

    assert await runs.store.list_runs(workflow="w", key="order-7") == [await runs.run(first)]
    assert [view.id for view in await runs.store.list_runs(workflow="v", key="order-7")] == [other]
    assert await runs.store.list_runs(workflow="w", key="order-8") == []


@pytest.mark.parametrize("workflow", [None, "w"])
@pytest.mark.parametrize("state", [None, RunState.RUNNING])
async def test_pages_of_runs_leave_out_nothing_and_repeat_nothing(
    on: Scenario, runs: Runs, workflow: str | None, state: RunState | None
) -> None:
    """Each page begins behind the last run of the one before, also among runs of one time."""
    for index in range(7):
        await runs.start(workflow="w")
        on.clock.advance(SECOND * (index % 3 == 2))
    whole = [view.id for view in await runs.store.list_runs()]
    found: list[RunView] = await runs.store.list_runs(workflow=workflow, state=state, limit=2)
    while True:
        await runs.start(workflow="w")
        last = found[-1].created_at, found[-1].id
        page = await runs.store.list_runs(workflow=workflow, state=state, before=last, limit=2)
        if not page:
            break
        found += page
    assert [view.id for view in found] == whole


async def test_those_that_are_final_are_told(runs: Runs) -> None:
    """Of many ids those of runs that ended are returned, as `get_run` has them."""
    ended, [job] = await runs.begin("a")
    running, cancelling, unknown = await runs.start(), await runs.start(), uuid4()
    await runs.store.cancel_run(cancelling)
    await runs.done(job, ending=RunEnding(RunState.SUCCEEDED, '{"x": 1}'))

    final = await runs.store.final_runs([running, ended, cancelling, unknown])
    assert final == {ended: await runs.run(ended)}
    assert final[ended].output == '{"x": 1}'
    assert await runs.store.final_runs([]) == {}


async def test_those_that_exist_are_told(runs: Runs) -> None:
    """Whatever their state is."""
    run_id, unknown = await runs.start(), uuid4()

    assert await runs.store.known_runs([run_id, unknown]) == {run_id}
    assert await runs.store.known_runs([]) == frozenset()


async def test_a_store_has_an_id_of_its_own(on: Scenario, runs: Runs) -> None:
    """It is a part of the keys of blobs, the same at each call, and no other store has it."""
    store_id = await runs.store.store_id()
    assert re.fullmatch("[0-9a-f]{32}", store_id)
    await runs.start()
    assert await runs.store.store_id() == store_id
    other = open_memory_stores(on.clock)
    assert await other.runs.store_id() != store_id
    await other.close()


async def test_endings_are_read_in_their_order(on: Scenario, runs: Runs) -> None:
    """Earlier ends first, those of one end as it named them, whatever their paths are."""
    run_id, [a, b, c] = await runs.begin("a", "b", "c")
    await runs.done(c, endings=(success("z"), success("c"), success("y")))
    on.clock.advance(SECOND)
    await runs.done(a, endings=(success("a"),))
    await runs.done(b, endings=(success("B"), success("b")))

    assert await runs.paths(run_id) == ["z", "c", "y", "a", "B", "b"]


async def test_endings_of_some_paths_are_read(runs: Runs) -> None:
    """In the order of their ends still; a path without an ending is left out."""
    run_id, [a] = await runs.begin("a")
    paths = ("m[1]/a", "m[0]/a", "m@", "m/", "/")
    await runs.done(a, endings=tuple(success(path) for path in paths))

    read = await runs.store.read_nodes(run_id, ["m@", "unknown", "m[0]/a", "m[1]/a"])
    assert [ending.path for ending in read] == ["m[1]/a", "m[0]/a", "m@"]
    assert await runs.store.read_nodes(run_id, []) == []


async def test_live_jobs_are_those_that_are_not_final(on: Scenario, runs: Runs) -> None:
    """Ready, scheduled, running and parked ones, with what is known of each."""
    run_id, [done, parked, running] = await runs.begin("done", "parked", "running")
    started_at = on.clock.now()
    await runs.done(
        done, jobs=(node_job(run_id, "ready"), node_job(run_id, "later", queue="mail", run_at=started_at + MINUTE))
    )
    await runs.park(parked, Park("approval", 2 * MINUTE))

    live = await runs.live(run_id)
    assert set(live) == {"ready", "later", "running", "parked"}
    assert live["running"] == LiveNode(running.id, "running", JobState.RUNNING, "default", 1, 0, started_at, None)
    assert live["parked"] == LiveNode(
        parked.id, "parked", JobState.PARKED, "default", 1, 0, None, started_at + 2 * MINUTE, "approval"
    )
    assert (live["ready"].state, live["ready"].started_at, live["ready"].attempt) == (JobState.READY, None, 0)
    assert (live["later"].state, live["later"].run_at) == (JobState.SCHEDULED, started_at + MINUTE)
    assert live["later"].queue == "mail"


async def test_live_jobs_count_their_failures(runs: Runs) -> None:
    """A job that waits for its retry shows how often it failed."""
    run_id, [job] = await runs.begin("a")
    await runs.lose(job, JobState.SCHEDULED, charged=True, delay=MINUTE)

    [live] = await runs.store.live_nodes(run_id)
    assert (live.state, live.attempt, live.failures) == (JobState.SCHEDULED, 1, 1)


async def test_live_jobs_are_those_of_their_run(on: Scenario, runs: Runs) -> None:
    """Other runs, and jobs of none, are not among them."""
    await on.enqueue(3)
    first, second = await runs.start("a"), await runs.start("a", "b")

    assert set(await runs.live(first)) == {"a"}
    assert set(await runs.live(second)) == {"a", "b"}


async def test_the_job_of_a_whole_run_is_live_without_a_node(runs: Runs) -> None:
    """Its node is None."""
    run_id, [job] = await runs.begin(None)

    [live] = await runs.store.live_nodes(run_id)
    assert (live.job_id, live.node) == (job.id, None)


@pytest.mark.parametrize("limit", [1, 3])
async def test_a_list_is_no_longer_than_its_limit(runs: Runs, limit: int) -> None:
    """Also where a filter leaves more."""
    for _ in range(4):
        await runs.start(workflow="w")

    assert len(await runs.store.list_runs(workflow="w", state=RunState.RUNNING, limit=limit)) == limit
