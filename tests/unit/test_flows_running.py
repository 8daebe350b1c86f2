"""Flows run: items between nodes, ports, policies, loops, flows within flows, references, lineage."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from headrace import App, RunFailedError
from headrace.apps.flows import add_flow
from headrace.apps.flows.given import Given
from headrace.apps.flows.tasks import register
from headrace.model.run import Level
from headrace.nodes.base import Call, Items, NodeError
from headrace.nodes.no_op import NoOpType
from tests.unit.flow_making import flow, node, problems_of, run_flow, run_items, start_flow

GO = node("Go", "manual")
LEVELS = pytest.mark.parametrize("level", [Level.WORKFLOW, Level.NODE])


def assign(name: str, **fields: Any) -> dict[str, Any]:
    """Return a node that puts fields into its items."""
    rows = [{"name": key, "value": value, "type": _kind(value)} for key, value in fields.items()]
    parameters = {"assignments": {"assignments": rows}, "includeOtherFields": True}
    return node(name, "set", parameters, typeVersion=3.4)


def _kind(value: Any) -> str:
    return "number" if isinstance(value, int) or (isinstance(value, str) and "{{" in value) else "string"


def where(name: str, left: str, right: int, operation: str = "gt", kind: str = "if") -> dict[str, Any]:
    """Return a node that compares numbers."""
    test = {"leftValue": left, "rightValue": right, "operator": {"type": "number", "operation": operation}}
    return node(name, kind, {"conditions": {"conditions": [test], "combinator": "and"}}, typeVersion=2)


@LEVELS
async def test_items_go_from_node_to_node(level: Level) -> None:
    """Each node is given what the one before put out."""
    made = flow([GO, assign("Double", n="={{ $json.n * 2 }}")], "Go -> Double")
    assert await run_flow(made, [{"n": 1}, {"n": 2}], level=level) == [{"n": 2}, {"n": 4}]


@LEVELS
async def test_branches_that_get_nothing_do_not_run_and_a_merge_takes_what_there_is(level: Level) -> None:
    """An if leads items to either side; the merge behind runs with both, or with one."""
    made = flow(
        [GO, where("If", "={{ $json.n }}", 1), assign("Big", kind=1), assign("Small", kind=0),
         node("Merge", "merge", {"mode": "append"}, typeVersion=3)],
        "Go -> If", "If:0 -> Big", "If:1 -> Small", "Big -> Merge:0", "Small -> Merge:1",
    )  # fmt: skip
    assert await run_flow(made, [{"n": 1}, {"n": 2}], level=level) == [{"n": 2, "kind": 1}, {"n": 1, "kind": 0}]
    assert await run_flow(made, [{"n": 5}], level=level) == [{"n": 5, "kind": 1}]


@LEVELS
async def test_a_loop_runs_its_body_for_each_batch(level: Level) -> None:
    """What comes back in each round is at the port done, in the order of the rounds, paired with what went in."""
    loop = node("Loop", "splitInBatches", {"batchSize": 2}, typeVersion=3)
    made = flow(
        [GO, loop, assign("Square", n="={{ $json.n * $json.n }}", round="={{ $runIndex }}"), assign("After", end=1)],
        "Go -> Loop", "Loop:1 -> Square", "Square -> Loop", "Loop:0 -> After",
    )  # fmt: skip
    found = await run_items(made, [{"n": n} for n in range(5)], level=level)
    assert [item["json"] for item in found] == [
        {"n": n * n, "round": n // 2, "end": 1} for n in range(5)
    ]  # fmt: skip
    assert [item["pairedItem"] for item in found] == [{"item": n} for n in range(5)]


@LEVELS
async def test_loops_stand_in_loops_and_see_what_is_outside(level: Level) -> None:
    """An inner loop is run anew in each round of the outer one; expressions reach out of both."""
    outer = node("Outer", "splitInBatches", {"batchSize": 1}, typeVersion=3)
    inner = node("Inner", "splitInBatches", {"batchSize": 1}, typeVersion=3)
    made = flow(
        [GO, assign("Base", base="={{ 100 }}"), outer, node("Split", "splitOut", {"fieldToSplitOut": "parts"}), inner,
         assign("Add", sum="={{ $json.parts + $('Base').first().json.base }}", of="={{ $('Outer').first().json.id }}")],
        "Go -> Base", "Base -> Outer", "Outer:1 -> Split", "Split -> Inner", "Inner:1 -> Add", "Add -> Inner",
        "Inner:0 -> Outer",
    )  # fmt: skip
    found = await run_flow(made, [{"id": 1, "parts": [1, 2]}, {"id": 2, "parts": [3]}], level=level)
    assert [(one["of"], one["sum"]) for one in found] == [(1, 101), (1, 102), (2, 103)]


@LEVELS
@pytest.mark.parametrize("mode", ["once", "each"])
async def test_a_flow_runs_another(level: Level, mode: str) -> None:
    """Its items are what the other flow ended with, once for all or once for each."""
    count = node("Count", "aggregate", {"aggregate": "aggregateAllItemData", "destinationFieldName": "all"})
    other = flow([node("In", "executeWorkflowTrigger"), count], "In -> Count", name="Other")
    made = flow([GO, node("Run", "executeWorkflow", {"workflowId": "Other", "mode": mode})], "Go -> Run")
    found = await run_flow(made, [{"n": 1}, {"n": 2}], others=[other], level=level)
    all_of = [{"n": 1}, {"n": 2}]
    assert found == ([{"all": all_of}] if mode == "once" else [{"all": [one]} for one in all_of])


@LEVELS
@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("continueRegularOutput", [[{"n": 1, "m": 2}, "n is text"], []]),
        ("continueErrorOutput", [[{"n": 1, "m": 2}], ["n is text"]]),
    ],
)
async def test_items_that_fail_go_on_by_policy(level: Level, policy: str, expected: Any) -> None:
    """One item fails and the other does not: it goes on, or leaves by the port of errors."""
    risky = assign("Risky", m="={{ $json.n * 2 }}") | {"onError": policy}
    made = flow([GO, risky, assign("Good"), assign("Bad", bad=1)], "Go -> Risky", "Risky:0 -> Good", "Risky:1 -> Bad")
    found = await run_flow(made, [{"n": 1}, {"n": "text"}], level=level)
    good = [one for one in found if "bad" not in one]
    bad = [one for one in found if "bad" in one]
    assert [one if "error" not in one else "n is text" for one in good] == expected[0]
    assert len(bad) == len(expected[1])
    assert all(one["n"] == "text" and "error" in one for one in bad)


@LEVELS
async def test_a_failure_fails_the_run_and_names_the_node(level: Level) -> None:
    """With the usual policy the run fails with the message of the node."""
    made = flow([GO, node("Stop", "stopAndError", {"errorMessage": "no more tea"})], "Go -> Stop")
    with pytest.raises(RunFailedError, match="no more tea"):
        await run_flow(made, level=level)


async def test_a_disabled_node_passes_its_items_on() -> None:
    """It does nothing, and what stands behind it is given what it was given."""
    made = flow([GO, assign("Off", n=7) | {"disabled": True}, assign("On", m=1)], "Go -> Off", "Off -> On")
    assert await run_flow(made, [{"n": 1}]) == [{"n": 1, "m": 1}]


async def test_execute_once_and_always_output() -> None:
    """One item is enough for the one, and the other gives an empty item rather than none."""
    once = assign("Once", m=1) | {"executeOnce": True}
    none = where("None", "={{ $json.n }}", 99, kind="filter") | {"alwaysOutputData": True}
    made = flow([GO, once, none, assign("End", end=1)], "Go -> Once", "Once -> None", "None -> End")
    assert await run_flow(made, [{"n": 1}, {"n": 2}]) == [{"end": 1}]


@LEVELS
async def test_a_reference_finds_the_item_that_another_came_from(level: Level) -> None:
    """After a sort and a filter `$('Go').item` is still the right one."""
    made = flow(
        [GO, node("Sort", "sort", {"sortFieldsUi": {"sortField": [{"fieldName": "n", "order": "descending"}]}}),
         where("Filter", "={{ $json.n }}", 1, kind="filter"),
         node("Bare", "set", {"mode": "raw", "jsonOutput": "={{ {who: $('Go').item.json.name} }}"}, typeVersion=3.4)],
        "Go -> Sort", "Sort -> Filter", "Filter -> Bare",
    )  # fmt: skip
    rows = [{"n": 1, "name": "a"}, {"n": 2, "name": "b"}, {"n": 3, "name": "c"}]
    assert await run_flow(made, rows, level=level) == [{"who": "c"}, {"who": "b"}]


async def test_a_node_waits_for_what_its_expressions_name() -> None:
    """A node of another branch that an expression refers to ends first."""
    made = flow(
        [GO, assign("Left", a=1), assign("Right", b="={{ $('Left').first().json.a + 1 }}")], "Go -> Left", "Go -> Right"
    )
    assert {"n": 0, "b": 2} in await run_flow(made, [{"n": 0}])


async def test_vars_and_execution_reach_expressions() -> None:
    """What a run is started with, and its own facts."""
    made = flow([GO, assign("Set", v="={{ $vars.city }}", mode="={{ $execution.mode }}")], "Go -> Set")
    made["nodes"][1]["parameters"]["assignments"]["assignments"][0]["type"] = "string"
    made["nodes"][1]["parameters"]["assignments"]["assignments"][1]["type"] = "string"
    assert await run_flow(made, [{}], variables={"city": "Graz"}) == [{"v": "Graz", "mode": "manual"}]


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (flow([GO, node("A", "no.such")], "Go -> A"), "there is no such node type"),
        (flow([assign("A")]), "no trigger"),
        (flow([GO, assign("A"), assign("B")], "Go -> A", "A -> B", "B -> A"), "leads back to where it comes from"),
        (flow([GO, assign("A", x="={{ $('No').first() }}")], "Go -> A"), "no node of that name"),
        (flow([GO, assign("A", x="={{ $('B').first() }}"), assign("B")], "Go -> A", "A -> B"), "comes behind it"),
        (flow([GO, assign("A", x="={{ 1 + }}")], "Go -> A"), "parameters"),
        (flow([GO, assign("A") | {"typeVersion": 99}], "Go -> A"), "typeVersion must be"),
        (flow([GO, node("Run", "executeWorkflow", {"workflowId": "Test"})], "Go -> Run"), "no flow 'Test'"),
    ],
)
def test_what_cannot_run_is_told(made: dict[str, Any], says: str) -> None:
    """Each reason names the node and what is wrong."""
    found = problems_of(made)
    assert len(found) == 1
    assert says in found[0]


def test_a_flow_that_runs_itself_is_told() -> None:
    """It would have no end."""
    made = flow([GO, node("Run", "executeWorkflow", {"workflowId": "Test"})], "Go -> Run")
    assert "within itself" in problems_of(made, made)[0]


@LEVELS
async def test_a_wait_in_loops_takes_the_signal_of_its_own_round(level: Level) -> None:
    """A signal of one round does not end the wait of another, in whichever loop."""
    app = App("memory://")
    register(app)
    wait = node("Ask", "wait", {"resume": "webhook"})
    outer, inner = (node(name, "splitInBatches", {"batchSize": 1}, typeVersion=3) for name in ("Outer", "Inner"))
    made = flow(
        [GO, outer, node("Split", "splitOut", {"fieldToSplitOut": "parts"}), inner, wait],
        "Go -> Outer", "Outer:1 -> Split", "Split -> Inner", "Inner:1 -> Ask", "Ask -> Inner", "Inner:0 -> Outer",
    )  # fmt: skip
    app.works_runs = True
    async with app.worker():
        run = await start_flow(app, made, [{"parts": [1, 2]}, {"parts": [3]}], level=level)
        for rounds in ("0/0", "0/1", "1/0"):
            await app.signal(f"{run.id}/Ask/{rounds}", {"round": rounds})
        found = await run.result("20s")
    assert [item["json"]["round"] for item in found] == ["0/0", "0/1", "1/0"]


@pytest.mark.parametrize(
    "given", [[{"n": 1}], {"n": 1}, [{"json": {"n": 1}}], {"items": [{"json": {"n": 1}}], "trigger": "Go"}]
)
async def test_a_flow_may_be_started_as_any_workflow(given: Any) -> None:
    """With items, plain data or one object as its input: its first trigger begins, and the other does not."""
    app = App("memory://")
    made = flow([GO, node("Later", "schedule"), assign("Set", m=2)], "Go -> Set", "Later -> Set")
    added = add_flow(app, made)
    async with app.worker():
        found = await (await app.start(added.workflow, given)).result("10s")
    assert [item["json"] for item in found] == [{"n": 1, "m": 2}]


async def test_an_input_that_is_no_items_fails_with_its_place() -> None:
    """Nothing is made up."""
    app = App("memory://")
    added = add_flow(app, flow([GO]))
    async with app.worker():
        with pytest.raises(RunFailedError, match=r"input\[0\] must be an object"):
            await (await app.start(added.workflow, [7])).result("10s")


@LEVELS
@pytest.mark.parametrize("text", ["a\0b", "\ud83d"], ids=["nul", "half"])
async def test_an_item_that_no_store_can_keep_fails_alone(
    level: Level, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A NUL character, or half of a pair, in one of many is an error of that item."""

    def spoil() -> list[Items]:
        """Put what an answer from outside may have into the second item."""
        texts = ["fine", text, "fine"]
        return [[{"json": {"t": one}, "pairedItem": {"item": index}} for index, one in enumerate(texts)]]

    monkeypatch.setattr(NoOpType, "run", lambda _, call: spoil())
    made = flow(
        [GO, node("Ask", "noOp", onError="continueErrorOutput"), assign("Bad", bad=1)], "Go -> Ask", "Ask:1 -> Bad"
    )
    made["connections"]["Ask"]["main"][0].append({"node": "Good", "type": "main", "index": 0})
    made["nodes"].append(assign("Good", good=1))
    found = await run_flow(made, [{"n": 0}, {"n": 1}, {"n": 2}], level=level)
    assert [one for one in found if "good" in one] == [{"t": "fine", "good": 1}] * 2
    (lost,) = [one for one in found if "bad" in one]
    assert lost["n"] == 1
    assert "must not contain" in lost["error"]


async def test_types_that_compute_run_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others on the loop go on meanwhile."""
    threads: list[threading.Thread] = []

    def run(_: NoOpType, call: Call) -> list[Items]:
        threads.append(threading.current_thread())
        return [call.items]

    monkeypatch.setattr(NoOpType, "run", run)
    await run_flow(flow([GO, node("Rest", "noOp")], "Go -> Rest"), [{}])
    assert threads
    assert threading.main_thread() not in threads


def test_the_items_of_another_node_are_made_ready_once() -> None:
    """Each item that refers to them would pay for all of them otherwise."""
    ports = [[{"json": {"n": n}, "trace": {"Go": [0, n]}} for n in range(3)]]
    given = Given.of(
        {"node": {"name": "A"}, "inputs": [ports], "refs": {"Go": {"out": ports, "ran": True}}, "around": {}}, ""
    )
    views = [given.scope_of(index).node("Go") for index in range(3)]
    assert [view.item for view in views] == [{"json": {"n": n}} for n in range(3)]
    assert all(view.items is views[0].items for view in views)


@LEVELS
@pytest.mark.parametrize("policy", ["continueRegularOutput", "continueErrorOutput"])
async def test_a_node_that_is_tried_again_goes_on_after_its_last_try(level: Level, policy: str) -> None:
    """Whatever failed it is tried as often as the flow says; then its policy decides, item by item."""
    risky = assign("Risky", m="={{ $json.n * 2 }}") | {
        "onError": policy, "retryOnFail": True, "maxTries": 3, "waitBetweenTries": 0
    }  # fmt: skip
    made = flow([GO, risky, assign("End")], "Go -> Risky", "Risky:0 -> End", "Risky:1 -> End")
    found = await run_flow(made, [{"n": 1}, {"n": "text"}], level=level)
    assert sorted(("error" in one, one["n"]) for one in found) == [(False, 1), (True, "text")]


@LEVELS
async def test_retry_on_fail_repeats_errors_of_all_kinds(level: Level) -> None:
    """As elsewhere: an error that nobody would call passing may be gone the next time."""
    app, tries = App("memory://"), []

    class Flaky(NoOpType):
        """Fails twice."""

        def run(self, call: Call) -> list[Items]:
            """Count the tries."""
            tries.append(1)
            if len(tries) < 3:
                raise NodeError("not yet")
            return [call.items]

    stop = node("Flaky", "noOp", retryOnFail=True, maxTries=3, waitBetweenTries=0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(NoOpType, "run", Flaky.run)
        added = add_flow(app, flow([GO, stop], "Go -> Flaky", settings={"headrace": {"level": str(level)}}))
        async with app.worker():
            assert await (await added.start([{"n": 1}])).result("10s") == [{"json": {"n": 1}}]
    assert len(tries) == 3


@LEVELS
@pytest.mark.parametrize("mode", ["once", "each"])
async def test_a_flow_that_fails_within_another_says_why(level: Level, mode: str) -> None:
    """The error of the inner flow is that of its items; with another policy they fail the run with it."""
    stop = node("Stop", "stopAndError", {"errorMessage": "=no {{ $json.n }}"})
    other = flow([node("In", "executeWorkflowTrigger"), where("If", "={{ $json.n }}", 1), stop],
                 "In -> If", "If:0 -> Stop", name="Other")  # fmt: skip
    run = node("Run", "executeWorkflow", {"workflowId": "Other", "mode": mode}, onError="continueErrorOutput")
    made = flow([GO, run, assign("Bad", bad=1)], "Go -> Run", "Run:1 -> Bad")
    found = await run_flow(made, [{"n": 1}, {"n": 2}], others=[other], level=level)
    bad = [one for one in found if "bad" in one]
    assert [one["n"] for one in bad] == ([1, 2] if mode == "once" else [2])
    assert all("no 2" in one["error"] for one in bad)


@LEVELS
async def test_items_that_cannot_enter_another_flow_fail_alone(level: Level) -> None:
    """What is wrong with the input of one item is no matter of the others."""
    other = flow([node("In", "executeWorkflowTrigger"), assign("Out", ok=1)], "In -> Out", name="Other")
    inputs = {"value": {"m": "={{ $json.n * 2 }}"}}
    run = node("Run", "executeWorkflow", {"workflowId": "Other", "workflowInputs": inputs},
               onError="continueRegularOutput")  # fmt: skip
    found = await run_flow(flow([GO, run], "Go -> Run"), [{"n": 1}, {"n": "x"}, {"n": 3}], others=[other], level=level)
    assert [one.get("m") for one in found] == [2, None, 6]
    assert "error" in found[1]


@LEVELS
async def test_loops_with_much_in_them_keep_it_in_files(level: Level) -> None:
    """The items of a loop and what came back so far are whole, in order, and paired, however much it is."""
    loop = node("Loop", "splitInBatches", {"batchSize": 7}, typeVersion=3)
    made = flow([GO, loop, assign("Sum", s="={{ $json.n + 1 }}")], "Go -> Loop", "Loop:1 -> Sum", "Sum -> Loop")
    rows = [{"n": n, "text": "é" * 700} for n in range(60)]
    found = await run_items(made, rows, level=level)
    assert [item["json"]["s"] for item in found] == list(range(1, 61))
    assert [item["pairedItem"] for item in found] == [{"item": n} for n in range(60)]


async def test_a_disabled_node_passes_all_items_whatever_else_is_said_of_it() -> None:
    """`executeOnce` is about what a node does."""
    made = flow([GO, assign("Off", m=1) | {"disabled": True, "executeOnce": True}], "Go -> Off")
    assert await run_flow(made, [{"n": 1}, {"n": 2}]) == [{"n": 1}, {"n": 2}]


async def test_an_item_of_several_ports_is_no_single_one() -> None:
    """One item at one port, and others at another: an aggregate of all came from several."""
    made = flow(
        [GO, where("If", "={{ $json.n }}", 1), node("All", "aggregate", {"aggregate": "aggregateAllItemData"}),
         assign("Which", n="={{ $('If').item.json.n }}")],
        "Go -> If", "If:0 -> All", "If:1 -> All", "All -> Which",
    )  # fmt: skip
    with pytest.raises(RunFailedError, match="came from several items"):
        await run_flow(made, [{"n": 1}, {"n": 2}, {"n": 3}])


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"items": "abc", "trigger": "Go"}, "input must be an object"),
        ({"items": [5], "trigger": "Go"}, "must be an object"),
        ({"items": [{"json": {}}], "trigger": "Nope"}, "input.trigger must be one of Go"),
    ],
)
async def test_an_input_that_only_looks_right_is_refused(given: Any, says: str) -> None:
    """What is started over HTTP may be anything."""
    app = App("memory://")
    added = add_flow(app, flow([GO, assign("A")], "Go -> A"))
    async with app.worker():
        with pytest.raises(RunFailedError, match=says):
            await (await app.start(added.workflow, given)).result("10s")


async def test_a_disabled_node_of_an_unknown_type_passes_its_items_on() -> None:
    """Nobody needs to know what it would have done."""
    made = flow([GO, node("Off", "acme.unknown", disabled=True)], "Go -> Off")
    assert await run_flow(made, [{"n": 1}]) == [{"n": 1}]
