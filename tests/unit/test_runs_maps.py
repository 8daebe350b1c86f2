"""Maps of runs: which entries one has when more of those before it end meanwhile, and entries that cannot start."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from headrace import Run
from headrace.engine import values
from headrace.engine.workflows import maps
from headrace.engine.workflows.kinds import Kinds
from headrace.engine.workflows.maps import Maps
from headrace.engine.workflows.means import Means
from headrace.engine.workflows.moving import Moved
from headrace.model.errors import RunFailedError
from headrace.model.graph.form import parse_graph
from headrace.model.graph.layout import Place
from headrace.model.graph.nodes import MapNode
from headrace.model.job import Claim, Completion, JobError, JobState
from headrace.model.payload import MAX_DEPTH
from headrace.model.run import Effects, Level, NodeState
from headrace.model.session import NewSession, ProcessId
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

LEVELS = [Level.WORKFLOW, Level.NODE]
at_both_levels = pytest.mark.parametrize("level", LEVELS)
#: Entries that one job starts here.
PART = 3
LOST = JobError("worker_lost", "its worker died three times")


class Site:
    """An open app with tasks that count their calls; runs are started of graphs as JSON."""

    def __init__(self) -> None:
        self.app = quick_app()
        self.calls: Counter[Any] = Counter()
        self.open = asyncio.Event()
        #: What `late` puts out.
        self.late: Any = None
        app = self.app

        @app.task
        async def early() -> list[int]:
            return list(range(2 * PART + 2))

        @app.task
        async def late() -> Any:
            await self.open.wait()
            return self.late

        @app.task
        async def note(entry: Any) -> Any:
            self.calls[str(entry)] += 1
            return entry

        @app.task
        async def stop_once(number: int) -> int:
            self.calls[number] += 1
            if number == 2 and self.calls[number] == 1:
                self.open.set()
                await asyncio.Event().wait()
            return number

        @app.task
        async def repeat(length: int) -> str:
            return "x" * length

        @app.task
        async def deep() -> Any:
            """Put out what is nested as deep as an output may be."""
            return json.loads("[" * MAX_DEPTH + "]" * MAX_DEPTH)

    async def start(self, graph: dict[str, Any], level: Level = Level.NODE) -> Run:
        """Start a run of a graph."""
        self.app.workflow("flow", parse_graph({**graph, "tags": [f"schedule:{level}"]}))
        return await self.app.start("flow")

    async def states(self, run: Run) -> dict[str, NodeState]:
        """Return the state of each node of a run that ended by its path, inputs left out."""
        endings = await self.app.runtime.stores.runs.read_nodes(run.id)
        return {ending.path: ending.state for ending in endings if not ending.path.endswith("@")}

    async def live(self, run: Run) -> list[str | None]:
        """Return the nodes whose jobs have not ended."""
        return [one.node for one in await self.app.runtime.stores.runs.live_nodes(run.id)]

    async def end_map_job(self, state: JobState, effects: Effects | None = None) -> None:
        """End the one job that waits for a worker of nodes, of the map."""
        stores = self.app.runtime.stores
        session = NewSession(ProcessId("elsewhere", 1, 1), "elsewhere", {"nodes": 1}, timedelta(hours=1))
        await stores.sessions.register_session(session)
        [job] = await stores.jobs.claim_jobs(Claim(session.id, "nodes", 1))
        assert job.node == "m"
        error = None if state is JobState.SUCCEEDED else LOST
        completion = Completion(job.id, job.attempt, state, error=error, effects=effects)
        assert await stores.jobs.complete_jobs(session.id, [completion]) == [job.id]


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """Return a site whose app is open, without a worker."""
    site = Site()
    async with site.app:
        yield site


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one job start `PART` entries."""
    kinds = Means.kinds

    def of_parts(self: Means, *args: Any, chunk: int | None = PART, **more: Any) -> Kinds:
        return kinds(self, *args, chunk=chunk, **more)

    monkeypatch.setattr(Means, "kinds", of_parts)


# What ends while entries start


def any_of_two(task: str) -> dict[str, Any]:
    """Return a graph of a map that starts by the first of two lists, and asks for the other one too."""
    over = {"$first": [{"$node": "late"}, {"$node": "early"}]}
    body = {"nodes": [{"id": "e", "task": task}]}
    return {
        "nodes": [
            {"id": "early", "task": "early"},
            {"id": "late", "task": "late"},
            {"id": "m", "kind": "map", "join": "any", "over": over, "body": body},
        ],
        "edges": [{"from": "early", "to": "m"}, {"from": "late", "to": "m"}],
        "output": {"$node": "m"},
    }


@pytest.mark.parametrize("late", [[], [1], list(range(100)), "no list"], ids=["empty", "short", "long", "no list"])
@pytest.mark.usefixtures("in_parts")
async def test_a_map_has_the_entries_it_began_with(site: Site, late: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another node puts out while its parts start changes nothing, and no job outlives the run."""
    site.late, start = late, Maps.start

    async def behind_late(self: Maps, place: Place, node: MapNode, first: int) -> Moved | None:
        if first:
            site.open.set()
            await wait_until(lambda: self.inputs.endings.read(["late"]))
        return await start(self, place, node, first)

    monkeypatch.setattr(Maps, "start", behind_late)
    run = await site.start(any_of_two("note"))
    async with site.app.worker():
        assert await run.result("10s") == list(range(2 * PART + 2))
    assert await site.live(run) == []
    assert site.calls == {str(number): 1 for number in range(2 * PART + 2)}


@pytest.mark.parametrize("late", [[], [1], list(range(100)), "no list"], ids=["empty", "short", "long", "no list"])
async def test_a_map_has_the_entries_it_began_with_after_a_stop(site: Site, late: Any) -> None:
    """A run that is played again has those of before, of which one ran when its worker stopped."""
    site.late = late
    run = await site.start(any_of_two("stop_once"), Level.WORKFLOW)

    async def ended() -> bool:
        return {"late", "m[0]/e"} <= (await site.states(run)).keys()

    async with site.app.worker(grace="10ms"):
        await wait_until(ended)
    async with site.app.worker():
        assert await run.result("10s") == list(range(2 * PART + 2))
    assert site.calls[2] == 2


# What a map puts out


@at_both_levels
async def test_a_list_that_is_too_large_for_one_value(
    site: Site, level: Level, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The longest outputs lie in blobs of their own, so that what is kept of the list stays small."""
    monkeypatch.setattr(values, "MAX_VALUE_BYTES", 300_000)
    monkeypatch.setattr(maps, "MOST_CHARS", 75_000)
    body = {"nodes": [{"id": "e", "task": "repeat"}]}
    lengths = [60_000, 5, 40_000, 60_000, 900, 60_000, 60_000, 60_000, 7]
    graph = {"nodes": [{"id": "m", "kind": "map", "over": lengths, "body": body}]}
    run = await site.start(graph, level)
    async with site.app.worker():
        assert await run.result("10s") == ["x" * length for length in lengths]


def test_which_outputs_of_a_list_lie_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """The longest, as few as that takes, and none that a reference is hardly shorter than."""
    monkeypatch.setattr(maps, "MOST_CHARS", 10_000)
    assert maps._to_keep_apart(["x" * 5_000, "x" * 5_000]) == []
    assert maps._to_keep_apart(["x" * 2_000, "x" * 5_000, "x" * 4_000]) == [1]
    assert maps._to_keep_apart(["x" * 1_000] * 20 + ["x" * 2_000]) == [20]


# Entries that cannot start

_NOTE = {"id": "e", "task": "note"}
BODIES = {
    "a task": ({"nodes": [_NOTE]}, "m[1]/e"),
    "a value": ({"nodes": [{"id": "e", "kind": "value", "value": {"$input": []}}]}, "m[1]/e"),
    "a task and an output": ({"nodes": [_NOTE], "output": {"$node": "e"}}, "m[1]"),
    "a chain": ({"nodes": [_NOTE, {"id": "f", "task": "note"}], "edges": [{"from": "e", "to": "f"}]}, "m[1]"),
}
TOO_DEEP = [{"$node": "deep"}]


def over(entries: list[Any], body: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return a graph of a map; its entries may have what `deep` puts out."""
    return {
        "nodes": [
            {"id": "deep", "task": "deep"},
            {"id": "m", "kind": "map", "over": entries, "body": body, **options},
        ],
        "edges": [{"from": "deep", "to": "m"}],
    }


@at_both_levels
@pytest.mark.parametrize(("body", "path"), BODIES.values(), ids=list(BODIES))
async def test_an_entry_that_cannot_start_has_failed(site: Site, level: Level, body: dict[str, Any], path: str) -> None:
    """A map that may lose one stands with null in its place."""
    run = await site.start(over([1, TOO_DEEP, 3], body, max_failed=1), level)
    async with site.app.worker():
        assert await run.result("10s") == [1, None, 3]
    [failed] = await site.app.runtime.stores.runs.read_nodes(run.id, [path])
    assert failed.state is NodeState.FAILED
    assert failed.error is not None
    assert failed.error.kind == "invalid_input"
    assert "entry 1 must not be nested deeper" in failed.error.message


@at_both_levels
@pytest.mark.parametrize(("body", "path"), BODIES.values(), ids=list(BODIES))
async def test_a_map_none_of_whose_entries_can_start(site: Site, level: Level, body: dict[str, Any], path: str) -> None:
    """It ends by their failures."""
    run = await site.start(over([TOO_DEEP], body), level)
    async with site.app.worker():
        with pytest.raises(RunFailedError, match="1 of 1 entries failed; the first: invalid_input"):
            await run.result("10s")
    assert (await site.states(run))[path.replace("1", "0")] is NodeState.FAILED


@at_both_levels
@pytest.mark.usefixtures("in_parts")
async def test_a_map_ends_when_its_entries_have(site: Site, level: Level) -> None:
    """Entries that cannot start, in a later part too, end no run while others run."""
    entries = [*range(PART + 1), TOO_DEEP, PART + 1, TOO_DEEP]
    run = await site.start(over(entries, {"nodes": [_NOTE]}), level)
    async with site.app.worker():
        with pytest.raises(RunFailedError, match=f"2 of {len(entries)} entries failed; the first: invalid_input"):
            await run.result("10s")
    assert await site.live(run) == []
    assert site.calls == {str(number): 1 for number in range(PART + 2)}


@pytest.mark.parametrize("name", ["a task", "a chain"])
@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CANCELLED])
@pytest.mark.usefixtures("in_parts")
async def test_a_part_of_a_map_whose_job_is_lost(site: Site, name: str, state: JobState) -> None:
    """Its entries end so, those before it and behind it run, and the map ends by all of them."""
    graph = over(list(range(2 * PART + 1)), BODIES[name][0], max_failed=PART)
    del graph["nodes"][0], graph["edges"]
    run = await site.start(graph)
    await start_part(site, run)
    await site.end_map_job(state)
    async with site.app.worker():
        assert await run.result("10s") == [0, 1, 2, None, None, None, 6]
    assert Counter((await site.states(run)).values())[NodeState(state)] == PART
    assert await site.live(run) == []


async def start_part(site: Site, run: Run) -> None:
    """Start the first part of the map of a run, and nothing else."""
    means = site.app.runtime.means
    facts = await means.known.get(run.id)

    async def keep(name: str, value: str) -> str:
        raise AssertionError(f"a map keeps nothing, {name} = {value}")

    moved = await means.kinds(facts, keep).run("m")
    await site.end_map_job(JobState.SUCCEEDED, moved.effects(facts))
