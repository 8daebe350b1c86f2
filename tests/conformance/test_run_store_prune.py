"""RunStore.prune_runs: what is removed of runs, when, and what never is."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from uuid import UUID, uuid4

from headrace.model.job import CancelAnswer
from headrace.model.run import RunEnding, RunState
from headrace.model.session import LeaderTerm
from tests.conformance.runs import GRAPH, Runs, arrival, success
from tests.conformance.scenario import ALL, DAY, SECOND, Scenario

KEPT = timedelta(days=7)


async def ended(runs: Runs, state: RunState = RunState.SUCCEEDED, **facts: object) -> UUID:
    """Start a run and end it; it leaves an ending and an open sum."""
    run_id, [job] = await runs.begin("a", **facts)
    await runs.done(
        job, endings=(success("a"),), arrivals=(arrival(run_id, "j", 2, 2, fired=1),), ending=RunEnding(state, "1")
    )
    return run_id


async def prune(runs: Runs, limit: int = ALL, term: LeaderTerm | None = None) -> int:
    """Prune once."""
    return await runs.store.prune_runs(older_than=KEPT, limit=limit, term=term)


async def test_a_run_is_kept_for_its_time(on: Scenario, runs: Runs) -> None:
    """Counted from its end; then it goes with its nodes and its graph."""
    run_id = await ended(runs)
    on.clock.advance(KEPT - SECOND)
    assert await prune(runs) == 0
    assert await runs.paths(run_id) == ["a"]
    on.clock.advance(2 * SECOND)

    assert await prune(runs) == 1
    assert await runs.store.get_run(run_id) is None
    assert await runs.store.read_nodes(run_id) == []
    assert await runs.store.known_runs([run_id]) == frozenset()
    assert await runs.store.list_runs() == []
    assert await runs.store.load_graph("s1") is None
    assert await prune(runs) == 0


async def test_every_final_state_goes(on: Scenario, runs: Runs) -> None:
    """Succeeded, failed and cancelled runs alike, those that the sweep ended too."""
    for state in (RunState.SUCCEEDED, RunState.FAILED, RunState.CANCELLED):
        await ended(runs, state)
    swept = await runs.start("a")
    await runs.store.cancel_run(swept)
    await runs.sweep(swept)
    on.clock.advance(KEPT + SECOND)

    assert await prune(runs) == 4


async def test_runs_that_are_not_final_stay(on: Scenario, runs: Runs) -> None:
    """However long ago they started."""
    running, cancelling = await runs.start("a"), await runs.start("a")
    await runs.store.cancel_run(cancelling)
    on.clock.advance(100 * KEPT)

    assert await prune(runs) == 0
    assert await runs.store.known_runs([running, cancelling]) == {running, cancelling}
    assert await runs.store.load_graph("s1") == GRAPH


async def test_a_graph_stays_as_long_as_a_run_has_it(on: Scenario, runs: Runs) -> None:
    """A younger run of the same snapshot keeps it."""
    await ended(runs)
    await ended(runs, snapshot="s2", graph='{"nodes": [2]}')
    on.clock.advance(KEPT + SECOND)
    await runs.start()

    assert await prune(runs) == 2
    assert await runs.store.load_graph("s1") == GRAPH
    assert await runs.store.load_graph("s2") is None


async def test_a_graph_that_is_gone_comes_again(on: Scenario, runs: Runs) -> None:
    """With the next run of that snapshot."""
    await ended(runs)
    on.clock.advance(KEPT + SECOND)
    await prune(runs)
    await runs.start()

    assert await runs.store.load_graph("s1") == GRAPH


async def test_a_definition_stays(on: Scenario, runs: Runs) -> None:
    """The runs of a workflow may all go: its definition does not."""
    stored = await on.stores.workflows.save_workflow("w", GRAPH, "s1")
    await ended(runs)
    on.clock.advance(KEPT + SECOND)
    assert await prune(runs) == 1

    assert await on.stores.workflows.get_workflow("w") == stored


async def test_a_key_goes_with_its_run(on: Scenario, runs: Runs) -> None:
    """Then it starts a new one, with another body as well."""
    run_id = await ended(runs, key="k", body_hash="h")
    on.clock.advance(KEPT + SECOND)
    await prune(runs)

    assert await runs.start(key="k", body_hash="other") != run_id


async def test_pruning_stops_at_its_limit(on: Scenario, runs: Runs) -> None:
    """One call removes at most its limit; the next ones go on until nothing is left."""
    for _ in range(5):
        await ended(runs)
    on.clock.advance(KEPT + SECOND)

    assert [await prune(runs, limit=2) for _ in range(4)] == [2, 2, 1, 0]


async def test_younger_runs_stay(on: Scenario, runs: Runs) -> None:
    """Beside older ones that go."""
    old = await ended(runs)
    on.clock.advance(2 * DAY)
    young = await ended(runs)
    on.clock.advance(KEPT - DAY)

    assert await prune(runs) == 1
    assert await runs.store.known_runs([old, young]) == {young}
    assert await runs.paths(young) == ["a"]


async def test_a_term_that_is_over_removes_nothing(on: Scenario, runs: Runs) -> None:
    """Only the term that holds does."""
    await ended(runs)
    on.clock.advance(KEPT + SECOND)
    term = await on.term()

    assert await prune(runs, term=replace(term, session=uuid4())) == 0
    assert await prune(runs, term=replace(term, term=term.term - 1)) == 0
    assert await prune(runs, term=term) == 1


async def test_a_pruned_run_is_not_cancelled(on: Scenario, runs: Runs) -> None:
    """It was final before."""
    run_id = await ended(runs)
    assert await runs.store.cancel_run(run_id) is CancelAnswer.ALREADY_FINAL
    on.clock.advance(KEPT + SECOND)
    await prune(runs)

    assert await runs.swept(limit=10) == []
