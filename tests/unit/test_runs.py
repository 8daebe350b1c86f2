"""Runs as people have them: started, waited for, signalled, cancelled, repeated; at both levels on the memory store."""

from __future__ import annotations

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from headrace import Context, Done, Run, chain, choose, group, input_, map_, pause, wait_signal, when
from headrace.engine.workflows import service
from headrace.model.errors import (
    ConfigError,
    ConflictError,
    InvalidInputError,
    NotFoundError,
    ResultTimeoutError,
    RunCancelledError,
    RunFailedError,
    SignalTimeoutError,
    WorkflowNotActiveError,
)
from headrace.model.graph.nodes import RetryRule
from headrace.model.run import Level, LiveNode, NodeState, RunState
from tests.unit.engine_app import quick_app
from tests.waiting import wait_until

_NOTHING = timedelta()
LEVELS = [Level.WORKFLOW, Level.NODE]
at_both_levels = pytest.mark.parametrize("level", LEVELS)


class Site:
    """An app with tasks that count their calls."""

    def __init__(self) -> None:  # noqa: C901 - its tasks
        self.app = quick_app()
        self.calls: Counter[str] = Counter()
        self.open = asyncio.Event()
        self.begun = asyncio.Event()
        self.broken: set[str] = set()
        self.noted: list[Any] = []
        app = self.app

        @app.task
        async def double(number: int) -> int:
            self.calls["double"] += 1
            return 2 * number

        @app.task
        async def name(text: str, mark: str = "") -> str:
            self.calls[f"name {mark}"] += 1
            if mark in self.broken:
                raise ValueError(f"{mark} is broken")
            return f"{text}{mark}"

        @app.task
        async def route(number: int) -> Done:
            return Done(number, port="large" if number > 10 else "small")

        @app.task
        async def hold(text: str) -> str:
            self.calls["hold"] += 1
            self.begun.set()
            await self.open.wait()
            return text

        @app.task
        async def approve(text: str, ctx: Context) -> str:
            self.calls["approve"] += 1
            answer = await app.wait_for(f"approve {text}")
            return f"{text}: {answer}"

        @app.task
        async def tell(ctx: Context) -> list[Any]:
            assert ctx.run is not None
            run = ctx.run
            return [str(run.id), run.workflow, run.node, run.user_id, run.correlation_id, run.metadata]

        @app.task
        async def total(numbers: list[int]) -> int:
            return sum(numbers)

        @app.task
        async def note(given: Any) -> None:
            self.noted.append(given)

        self.total, self.note, self.tell = total, note, tell
        self.double, self.name, self.route, self.hold, self.approve = double, name, route, hold, approve

    def declare(self, name: str, canvas: Any, level: Level | None = None, **options: Any) -> str:
        """Declare a workflow that is worked at a level, and return its name."""
        tags = () if level is None else (f"schedule:{level}",)
        self.app.workflow(name, canvas, tags=tags, **options)
        return name

    async def states(self, run: Run) -> dict[str, NodeState]:
        """Return the state of each node of a run by its path, those within others too."""
        found, todo = {}, list((await run.tree()).nodes)
        for node in todo:  # which grows
            found[node.path] = node.state
            todo.extend(node.children)
        return found


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    """Return a site whose app works."""
    site = Site()
    site.declare("seed", site.double.s(), None)
    async with site.app.worker():
        yield site


@at_both_levels
async def test_a_chain_hands_on_what_each_node_gives(site: Site, level: Level) -> None:
    """A group in a chain gives the list of its outputs; the run knows its level and why."""
    flow = site.declare("flow", chain(site.double.s(), group(site.double.s(), site.double.s()), site.total.s()), level)
    run = await site.app.start(flow, 3)
    assert await run.result("10s") == 24
    view = await run.view()
    assert (view.level, view.state) == (level, RunState.SUCCEEDED)
    assert view.reason


@at_both_levels
async def test_a_port_leads_one_way_and_passes_over_the_other(site: Site, level: Level) -> None:
    """What a task leaves by decides which of its successors runs."""
    large, small = site.name.si("large").options(name="large"), site.name.si("small").options(name="small")
    flow = site.declare("ports", (site.route.s().port("large") >> large).port("small") >> small, level)
    run = await site.app.start(flow, 11)
    await run.result("10s")
    states = await site.states(run)
    assert (states["large"], states["small"]) == (NodeState.SUCCESS, NodeState.SKIPPED)
    assert site.calls["name "] == 1


@at_both_levels
async def test_a_choice_ends_in_what_was_chosen(site: Site, level: Level) -> None:
    """Conditions are of the value that stands before them."""
    flow = site.declare("flow", choose(when().gt(10), site.name.si("large"), otherwise=site.name.si("small")), level)
    assert await (await site.app.start(flow, 11)).result("10s") == "large"
    assert await (await site.app.start(flow, 1)).result("10s") == "small"


@at_both_levels
async def test_a_map_gives_the_list_of_outputs_in_order(site: Site, level: Level) -> None:
    """Bodies of several nodes, and no entries at all."""
    flow = site.declare("flow", map_(chain(site.double.s(), site.double.s()), over=input_), level)
    assert await (await site.app.start(flow, [1, 2, 3])).result("10s") == [4, 8, 12]
    assert await (await site.app.start(flow, [])).result("10s") == []


@at_both_levels
async def test_what_fails_names_its_node_and_stops_only_what_depends_on_it(site: Site, level: Level) -> None:
    """Other branches go on to their end."""
    site.broken.add("!")
    bad = site.name.s(mark="!").options(name="bad", retry=RetryRule("fixed", max_tries=1))
    branches = group(chain(bad, site.name.s("after")), site.name.s("beside"))
    run = await site.app.start(site.declare("flow", chain(site.name.s(), branches), level), "x")
    with pytest.raises(RunFailedError, match="node bad: ! is broken"):
        await run.result("10s")
    states = await site.states(run)
    assert states["bad"] is NodeState.FAILED
    assert sorted(states.values()) == ["failed", "skipped", "success", "success"]


@at_both_levels
async def test_a_node_is_tried_as_often_as_its_rule_says(site: Site, level: Level) -> None:
    """The rule of the node counts, not that of its task."""
    site.broken.add("!")
    rule = RetryRule("linear", max_tries=3, base=_NOTHING, jitter=False)
    flow = site.declare("flow", site.name.s(input_, mark="!").options(name="bad", retry=rule), level)
    run = await site.app.start(flow, "x")
    with pytest.raises(RunFailedError):
        await run.result("10s")
    assert site.calls["name !"] == 3
    [node] = (await run.tree()).nodes
    assert node.attempts == 3


@at_both_levels
async def test_errors_that_a_rule_does_not_name_are_not_tried_again(site: Site, level: Level) -> None:
    """By the names of exception classes."""
    site.broken.add("!")
    rule = RetryRule("fixed", max_tries=3, base=_NOTHING, on=("TimeoutError",))
    flow = site.declare("flow", site.name.s(input_, mark="!").options(name="bad", retry=rule), level)
    with pytest.raises(RunFailedError):
        await (await site.app.start(flow, "x")).result("10s")
    assert site.calls["name !"] == 1


@at_both_levels
async def test_a_handler_of_errors_gets_the_error(site: Site, level: Level) -> None:
    """The run does not fail by an error that somebody handles."""
    site.broken.add("!")
    bad = site.name.s(input_, mark="!").options(name="bad", retry=RetryRule("fixed", max_tries=1))
    flow = site.declare("flow", bad.on_failure(site.note.s()), level)
    run = await site.app.start(flow, "x")
    await run.result("10s")
    assert site.noted == [{"kind": "ValueError", "message": "! is broken"}]


@at_both_levels
async def test_a_signal_wakes_what_waits_for_it_and_an_early_one_is_kept(site: Site, level: Level) -> None:
    """The first signal of a key stands; a run that waits holds no slot."""
    flow = site.declare("flow", chain(wait_signal("go"), site.name.s("!")), level)
    run = await site.app.start(flow)
    await wait_until(lambda: _is(site, run, "parked"), message="the run to wait")
    assert (await run.view()).level is Level.NODE
    assert await site.app.signal("go", "ready")
    assert not await site.app.signal("go", "again")
    assert await run.result("10s") == "ready!"
    early = await site.app.start(flow)
    assert await early.result("10s") == "ready!"


async def _is(site: Site, run: Run, state: str) -> bool:
    return state in (await site.states(run)).values()


@at_both_levels
async def test_a_wait_ends_with_its_time(site: Site, level: Level) -> None:
    """Without a signal the node fails; a pause just ends."""
    flow = site.declare("flow", chain(wait_signal("never", timeout="30ms"), site.name.s("!")), level)
    with pytest.raises(RunFailedError, match="never"):
        await (await site.app.start(flow)).result("10s")
    short = site.declare("short", chain(pause("30ms"), site.double.si(4)), level)
    assert await (await site.app.start(short, "x")).result("10s") == 8


@at_both_levels
async def test_a_task_that_waits_for_a_signal_leaves_its_slot(site: Site, level: Level) -> None:
    """At workflow level the run moves on, so that only the task waits."""
    flow = site.declare("flow", site.approve.s(), level)
    run = await site.app.start(flow, "page 1")
    await wait_until(lambda: _is(site, run, "parked"), message="the task to wait")
    await site.app.signal("approve page 1", "yes")
    assert await run.result("10s") == "page 1: yes"
    assert (await run.view()).level is Level.NODE


async def test_a_job_of_no_run_waits_for_signals_too_and_for_no_longer_than_it_says(site: Site) -> None:
    """Outside of tasks nothing can wait."""

    @site.app.task
    async def ask() -> Any:
        return await site.app.wait_for("answer", timeout="10s")

    @site.app.task
    async def hurry() -> Any:
        try:
            return await site.app.wait_for("no answer", timeout="20ms")
        except SignalTimeoutError:
            return "late"

    waiting, late = await ask.enqueue(), await hurry.enqueue()
    assert await late.result("10s") == "late"
    await site.app.signal("answer", {"a": 1})
    assert await waiting.result("10s") == {"a": 1}
    with pytest.raises(ConfigError, match="within a task"):
        await site.app.wait_for("answer")


@at_both_levels
async def test_a_cancelled_run_ends_and_starts_nothing_more(site: Site, level: Level) -> None:
    """What runs is stopped, what waits never starts."""
    flow = site.declare("flow", chain(site.hold.s(), site.name.s("!")), level)
    run = await site.app.start(flow, "x")
    await site.begun.wait()
    await run.cancel()
    with pytest.raises(RunCancelledError):
        await run.result("10s")
    assert await run.status() is RunState.CANCELLED
    assert site.calls["name "] == 0
    states = await site.states(run)
    assert states["hold"] is NodeState.CANCELLED
    assert NodeState.SUCCESS not in states.values()


async def test_a_cancel_leaves_nothing_that_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many wait: it sweeps until none does."""
    monkeypatch.setattr(service, "CANCEL_SLICE", 2)
    site = Site()
    flow = site.declare("flow", group(*(site.double.si(number) for number in range(7))), Level.NODE)
    async with site.app:
        run = await site.app.start(flow)
        await run.cancel()
        assert await site.app.runtime.stores.runs.live_nodes(run.id) == []
        assert await run.status() is RunState.CANCELLED


async def test_a_run_at_workflow_level_is_moved_on_where_it_outgrows_that(site: Site) -> None:
    """What was done before is not done again."""
    flow = site.declare("flow", chain(site.name.s(), map_(site.name.s("!"), over=list("abcdefghijklm"))))
    run = await site.app.start(flow, "x")
    assert await run.result("10s") == [f"{letter}!" for letter in "abcdefghijklm"]
    view = await run.view()
    assert view.level is Level.NODE
    assert "more than 10 entries" in view.reason
    assert site.calls["name "] == 1


@at_both_levels
async def test_a_repeated_run_pays_only_for_what_changed(site: Site, level: Level) -> None:
    """From a node on: that one, and those behind it whose input is another."""
    site.broken.add("2")
    no_retry = RetryRule("fixed", max_tries=1)
    first, second, third = (
        site.name.s(*given, mark=str(number)).options(name=f"n{number}", retry=no_retry)
        for number, given in ((1, [input_]), (2, []), (3, []))
    )
    flow = site.declare("flow", chain(first, second, third), level)
    run = await site.app.start(flow, "x")
    with pytest.raises(RunFailedError):
        await run.result("10s")
    site.broken.clear()
    again = await run.rerun()
    assert await again.result("10s") == "x123"
    assert (site.calls["name 1"], site.calls["name 2"], site.calls["name 3"]) == (1, 2, 1)
    from_two = await again.rerun("n2")
    assert await from_two.result("10s") == "x123"
    assert (site.calls["name 1"], site.calls["name 2"], site.calls["name 3"]) == (1, 3, 1)
    reused = {node.path: node.reused for node in (await from_two.tree()).nodes}
    assert reused == {"n1": True, "n2": False, "n3": True}
    with pytest.raises(InvalidInputError, match="n1, n2, n3"):
        await again.rerun("n4")


@at_both_levels
async def test_a_start_with_a_key_is_one_run(site: Site, level: Level) -> None:
    """Another input under the same key is a conflict."""
    flow = site.declare("flow", site.double.s(), level)
    one, other = await site.app.start(flow, 2, key="k"), await site.app.start(flow, 2, key="k")
    assert one.id == other.id
    with pytest.raises(ConflictError):
        await site.app.start(flow, 3, key="k")


async def test_a_workflow_that_is_switched_off_is_not_started(site: Site) -> None:
    """Nor one that nobody knows."""
    flow = site.declare("flow", site.double.s())
    await site.app.start(flow, 1)
    await site.app.runtime.stores.workflows.set_workflow_active("flow", active=False)
    with pytest.raises(WorkflowNotActiveError, match="headrace workflow activate flow"):
        await site.app.start(flow, 1)
    with pytest.raises(NotFoundError):
        await site.app.start("unknown", 1)


@at_both_levels
async def test_every_node_is_told_who_started_the_run(site: Site, level: Level) -> None:
    """Templates read what was given along."""
    from headrace import run_

    flow = site.declare("flow", site.name.si(run_["user_id"], mark=run_["metadata"]["tier"]), level)
    run = await site.app.start(flow, user_id="u1", correlation_id="c1", metadata={"tier": "gold"})
    assert await run.result("10s") == "u1gold"
    told = site.declare("told", site.tell.s(), level)
    run = await site.app.start(told, user_id="u1", correlation_id="c1", metadata={"tier": "gold"})
    assert await run.result("10s") == [str(run.id), "told", "tell", "u1", "c1", {"tier": "gold"}]
    assert await run.context() == {"user_id": "u1", "correlation_id": "c1", "metadata": {"tier": "gold"}}


@at_both_levels
async def test_a_failed_run_starts_the_workflow_that_is_to_follow(site: Site, level: Level) -> None:
    """Once, with the run and its error."""
    site.broken.add("!")
    site.declare("rescue", site.note.s())
    bad = site.name.s(input_, mark="!").options(name="bad", retry=RetryRule("fixed", max_tries=1))
    flow = site.declare("flow", bad, level, on_failure="rescue")
    run = await site.app.start(flow, "x")
    with pytest.raises(RunFailedError):
        await run.result("10s")
    await wait_until(lambda: site.noted, message="the other workflow")
    assert site.noted[0]["run_id"] == str(run.id)
    assert site.noted[0]["error"]["message"] == "node bad: ! is broken"


@at_both_levels
async def test_large_values_travel_as_references(site: Site, level: Level) -> None:
    """Rows stay small, and the value comes back whole."""
    flow = site.declare("flow", chain(site.name.s(input_, "."), site.name.s("!")), level)
    large = "x" * 300_000
    run = await site.app.start(flow, large)
    assert await run.result("20s") == f"{large}.!"
    view = await run.view()
    assert len(view.input) < 1_000
    assert view.output is not None
    assert len(view.output) < 1_000


async def test_results_that_take_too_long_say_so(site: Site) -> None:
    """The run goes on."""
    run = await site.app.start(site.declare("flow", site.hold.s()), "x")
    with pytest.raises(ResultTimeoutError, match="run show"):
        await run.result("30ms")
    site.open.set()
    assert await run.result("10s") == "x"


@pytest.mark.parametrize(
    ("options", "limits", "level"),
    [
        ({}, {}, Level.WORKFLOW),
        ({"rate_limit": "100/s"}, {}, Level.NODE),
        ({}, {"concurrency": 3}, Level.NODE),
        ({}, {"fair": "batch"}, Level.WORKFLOW),
    ],
)
async def test_only_a_gate_that_holds_a_task_makes_its_runs_node_level(
    options: dict[str, Any], limits: dict[str, Any], level: Level
) -> None:
    """Its own, or one that its queue declares; not that of another task in the queue, nor one of batches."""
    app = quick_app()

    @app.task(rate_limit="10/s")
    async def other() -> None: ...

    @app.task(**options)
    async def plain(number: int) -> int:
        return number

    app.queue("default", **limits)
    app.workflow("flow", plain.s(), tags=("schedule:workflow_level",))
    async with app:
        view = await (await app.start("flow", 1)).view()
    assert (view.level, "passes a gate" in (view.reason or "")) == (level, level is Level.NODE)


async def test_a_workflow_may_be_named_where_its_function_is_decorated(site: Site) -> None:
    """By the text alone, or with `name=`; not by both."""

    @site.app.workflow("twice")
    def first(number: int) -> Any:
        return site.double.s(number)

    assert first.name == "twice"
    assert await (await site.app.start("twice", 4)).result("10s") == 8
    with pytest.raises(InvalidInputError, match="name must be given once, and is 'twice' already"):
        site.app.workflow("twice", name="thrice")  # type: ignore[call-overload]
    with pytest.raises(InvalidInputError, match="part must be a task's call"):
        site.app.workflow("empty", None)  # type: ignore[call-overload]


@at_both_levels
async def test_a_function_that_follows_a_failure_is_given_the_report(site: Site, level: Level) -> None:
    """As its one argument, or in arguments of the names of its members."""

    @site.app.workflow
    def whole(report: dict[str, Any]) -> Any:
        return site.note.s(report["run_id"])

    @site.app.workflow
    def spread(workflow: str, run_id: str, error: Any) -> Any:
        return site.note.s(run_id)

    site.broken.add("!")
    bad = site.name.s(input_, mark="!").options(name="bad", retry=RetryRule("fixed", max_tries=1))
    for number, follower in enumerate(("whole", "spread")):
        run = await site.app.start(site.declare(f"flow-{number}", bad, level, on_failure=follower), "x")
        with pytest.raises(RunFailedError):
            await run.result("10s")
        await wait_until(lambda run=run: str(run.id) in site.noted, message="the other workflow")


async def test_a_worker_names_what_can_follow_no_failure(caplog: pytest.LogCaptureFixture) -> None:
    """Names that nobody declares or stored, and functions that do not take the report."""
    app = quick_app()

    @app.task
    async def noop(given: Any = None) -> None: ...

    @app.workflow
    def unfit(url: str, words: int) -> Any:
        return noop.s(url)

    for name, follower in (("a", "unfit"), ("b", "misspelt"), ("c", "stored"), ("d", "a")):
        app.workflow(name, noop.s(), on_failure=follower)
    async with app:
        await app.run_service.save("stored", app.workflow("d", noop.s(), on_failure="a").graph)
        with caplog.at_level(logging.WARNING, "headrace.workflows"):
            async with app.worker():
                pass
    unfit_said, misspelt_said = (record.getMessage() for record in caplog.records)
    assert "workflow 'a' has on_failure='unfit'" in unfit_said and "workflow unfit takes (url:" in unfit_said
    assert (
        "workflow 'b' has on_failure='misspelt'" in misspelt_said and "this app has: a, b, c, d, unfit" in misspelt_said
    )


@at_both_levels
async def test_who_waits_for_a_run_is_told_once_that_no_worker_is_there(
    level: Level, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """With the queue; the wait goes on, and ends when a worker comes."""
    monkeypatch.setattr("headrace.runs.WORKER_WARNING_SECONDS", 0.03)
    site = Site()
    flow = site.declare("flow", site.double.s(), level)
    async with site.app:
        run = await site.app.start(flow, 2)
        with caplog.at_level(logging.WARNING, "headrace.runs"):
            waiting = asyncio.ensure_future(run.result("10s"))
            await wait_until(lambda: caplog.records)
            async with site.app.worker():
                assert await waiting == 4
    [warning] = caplog.records
    queue = "workflows" if level is Level.WORKFLOW else "default"
    assert f"no live worker serves '{queue}'" in warning.getMessage()


async def test_who_waits_for_a_run_that_is_worked_is_told_nothing(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor for one that waits for a signal, or whose worker is busy."""
    monkeypatch.setattr("headrace.runs.WORKER_WARNING_SECONDS", 0.01)
    looks, runs = 0, site.app.runtime.stores.runs
    live_nodes = runs.live_nodes

    async def counted(run_id: UUID) -> list[LiveNode]:
        nonlocal looks
        looks += 1
        return await live_nodes(run_id)

    monkeypatch.setattr(runs, "live_nodes", counted)
    run = await site.app.start(site.declare("flow", chain(wait_signal("go"), site.hold.s())))
    with caplog.at_level(logging.WARNING, "headrace.runs"):
        waiting = asyncio.ensure_future(run.result("10s"))
        await wait_until(lambda: looks >= 2)
        await site.app.signal("go", "x")
        await wait_until(site.begun.is_set)
        seen = looks
        await wait_until(lambda: looks > seen)
        site.open.set()
        assert await waiting == "x"
    assert not caplog.records


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metadata": [1]}, "metadata must be a mapping of names to JSON data, or None, got [1]"),
        ({"metadata": "x"}, "metadata must be a mapping"),
        ({"metadata": {1: 2}}, "metadata must have texts as names, got 1"),
        ({"metadata": {"a": object()}}, "metadata must be"),
        ({"user_id": 5}, "user_id must be a text, or None, got 5"),
        ({"correlation_id": 5}, "correlation_id must be a text, or None, got 5"),
    ],
)
async def test_what_goes_along_with_a_start_is_checked(site: Site, options: dict[str, Any], message: str) -> None:
    """With the field, its rule and the value; no run is stored."""
    flow = site.declare("flow", site.double.s())
    with pytest.raises(InvalidInputError, match=re.escape(message)):
        await site.app.start(flow, 2, **options)
    assert await site.app.runtime.stores.runs.list_runs() == []
