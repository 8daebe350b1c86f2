"""How flows are arranged: what runs, in which order, and what belongs to which loop."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.apps.flows.checks import check_flow
from headrace.apps.flows.form import parse_flow
from headrace.apps.flows.naming import ids_of, workflow_name
from headrace.apps.flows.structure import Block
from headrace.nodes.no_op import NoOpType
from tests.unit.flow_making import flow, node, problems_of

GO = node("Go", "manual")


def loop(name: str) -> dict[str, Any]:
    """Return a loop."""
    return node(name, "splitInBatches", typeVersion=3)


def arranged(made: dict[str, Any]) -> Block:
    """Return the block of a flow that can run."""
    checked = check_flow(parse_flow(made))
    assert checked.plan is not None, [str(one) for one in checked.problems]
    return checked.plan.block


def test_each_node_comes_after_those_that_lead_to_it() -> None:
    """Whatever the order in the file is."""
    made = flow([node("C", "noOp"), node("B", "noOp"), GO, node("A", "noOp")], "Go -> A", "A -> B", "B -> C")
    assert arranged(made).names == ["Go", "A", "B", "C"]


def test_what_no_trigger_leads_to_never_runs_and_is_told() -> None:
    """It is left out of the graph; notes for people are no nodes at all."""
    made = flow([GO, node("A", "noOp"), node("Lost", "noOp"), node("Note", "stickyNote")], "Go -> A")
    checked = check_flow(parse_flow(made))
    assert [one.node for one in checked.notes] == ["Lost"]
    assert arranged(made).names == ["Go", "A"]


def test_a_loop_has_its_body_and_what_stands_aside_of_it() -> None:
    """A branch of the body that does not lead back is part of it; what is behind the end is not."""
    made = flow(
        [GO, loop("L"), node("In", "noOp"), node("Side", "noOp"), node("After", "noOp")],
        "Go -> L", "L:1 -> In", "In -> L", "In -> Side", "L:0 -> After",
    )  # fmt: skip
    block = arranged(made)
    assert block.names == ["Go", "L", "After"]
    assert sorted(block.loops["L"].names) == ["In", "Side"]
    assert [link.source for link in block.loops["L"].returns] == ["In"]


def test_a_node_within_and_behind_a_loop_is_in_both() -> None:
    """It runs in each round, and once more at the end."""
    made = flow(
        [GO, loop("L"), node("In", "noOp"), node("Tell", "noOp")],
        "Go -> L", "L:1 -> In", "In -> L", "In -> Tell", "L:0 -> Tell",
    )  # fmt: skip
    block = arranged(made)
    assert "Tell" in block.names
    assert "Tell" in block.loops["L"].names


def test_loops_within_loops_are_found_whichever_comes_first() -> None:
    """The outer one is the one that the way from the trigger enters."""
    made = flow(
        [loop("Inner"), GO, loop("Outer"), node("X", "noOp")],
        "Go -> Outer", "Outer:1 -> Inner", "Inner:1 -> X", "X -> Inner", "Inner:0 -> Outer",
    )  # fmt: skip
    outer = arranged(made).loops["Outer"]
    assert outer.names == ["Inner"]
    assert outer.loops["Inner"].names == ["X"]


def test_loops_one_after_another_are_apart() -> None:
    """Each has its own body."""
    made = flow(
        [GO, loop("One"), node("A", "noOp"), loop("Two"), node("B", "noOp")],
        "Go -> One", "One:1 -> A", "A -> One", "One:0 -> Two", "Two:1 -> B", "B -> Two",
    )  # fmt: skip
    block = arranged(made)
    assert block.names == ["Go", "One", "Two"]
    assert (block.loops["One"].names, block.loops["Two"].names) == (["A"], ["B"])


@pytest.mark.parametrize(
    ("wires", "says"),
    [
        (["Go -> A", "A -> B", "B -> A"], "A → B → A: leads back to where it comes from"),
        (["Go -> A", "A -> A"], "A → A: leads back to where it comes from"),
        (["Go -> L", "L:1 -> A", "A -> L", "Go -> A"], "is led to from outside of it as well"),
        (["Go -> L", "L:0 -> A", "A -> L"], "by the port done"),
        (["Go -> L", "L:1 -> A", "A -> B", "B -> A", "B -> L"], "leads back to where it comes from"),
    ],
)
def test_other_cycles_are_told(wires: list[str], says: str) -> None:
    """A flow has to come to an end: each reason names a node."""
    found = problems_of(flow([GO, loop("L"), node("A", "noOp"), node("B", "noOp")], *wires))
    assert any(says in one for one in found), found


def test_what_is_seen_from_outside_of_a_loop_is_not_its_body() -> None:
    """An expression behind a loop cannot name a node of its body."""
    made = flow(
        [GO, loop("L"), node("In", "noOp"), node("After", "set", {"mode": "raw", "jsonOutput": "={{ $('In').all() }}"},
         typeVersion=3.4)],
        "Go -> L", "L:1 -> In", "In -> L", "L:0 -> After",
    )  # fmt: skip
    assert "in the body of a loop" in problems_of(made)[0]


def test_names_of_people_become_words_of_the_engine() -> None:
    """Any text will do, and none takes that of another."""
    names = ["Set", "set!", "节点", "节点 2", "result", "loop-take", "x" * 90, "x" * 91]
    ids = ids_of(names)
    assert len(set(ids.values())) == len(names)
    assert all(len(one) <= 64 for one in ids.values())
    assert ids["result"] != "result"
    assert workflow_name("Äpfel & Birnen") == "flow.apfel-birnen"
    alike = {workflow_name(name) for name in ("日报", "周报", "x" * 90, "x" * 91)}
    assert len(alike) == 4


def test_a_node_type_that_breaks_makes_a_problem_and_no_traceback(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Types of other packages may do anything when they check their parameters."""

    def break_down(*_: object) -> None:
        raise KeyError("colour")

    monkeypatch.setattr(NoOpType, "check", break_down)
    (problem,) = problems_of(flow([GO, node("A", "noOp")], "Go -> A"))
    assert "cannot be checked: KeyError: 'colour'" in problem
    assert "node 'A'" in caplog.text


def test_an_input_that_a_node_does_not_have_is_told() -> None:
    """The items that are led there would be lost without a word."""
    assert "has one input, and 'Go' leads to another" in problems_of(flow([GO, node("A", "noOp")], "Go -> A:1"))[0]


def test_flows_that_grow_beyond_all_bounds_are_told_soon() -> None:
    """Too many nodes, too many loops in one another, and flows that run flows that run flows."""
    many = flow([GO, *(node(f"N{n}", "noOp") for n in range(600))])
    assert "more than 500 nodes" in problems_of(many)[0]
    deep = [GO, *(loop(f"L{n}") for n in range(20))]
    wires = ["Go -> L0", *(f"L{n}:1 -> L{n + 1}" for n in range(19)), *(f"L{n + 1}:0 -> L{n}" for n in range(19))]
    assert any("more than 6 loops" in one for one in problems_of(flow(deep, *wires)))
    runs = [[node(f"Run{n}", "executeWorkflow", {"workflowId": f"F{level + 1}"}) for n in range(20)]
            for level in range(4)]  # fmt: skip
    flows = [flow([GO, *nodes], *(f"Go -> Run{n}" for n in range(20)), name=f"F{level}")
             for level, nodes in enumerate(runs)]  # fmt: skip
    last = flow([GO], name="F4")
    assert any("more than 500 nodes" in one for one in problems_of(flows[0], *flows[1:], last))


def test_a_disabled_loop_passes_its_items_on() -> None:
    """By its first port, as any disabled node: what stands in its body never runs."""
    made = flow(
        [GO, loop("L") | {"disabled": True}, node("In", "noOp"), node("After", "noOp")],
        "Go -> L", "L:1 -> In", "In -> L", "L:0 -> After",
    )  # fmt: skip
    assert arranged(made).names == ["Go", "L", "After"]


def test_a_node_that_two_blocks_have_is_told() -> None:
    """Within and behind a loop: it runs more often than it is drawn."""
    made = flow(
        [GO, loop("L"), node("In", "noOp"), node("Tell", "noOp")],
        "Go -> L", "L:1 -> In", "In -> L", "In -> Tell", "L:0 -> Tell",
    )  # fmt: skip
    (note,) = check_flow(parse_flow(made)).notes
    assert (note.node, "runs in each round" in note.message) == ("Tell", True)


def test_node_types_that_are_not_needed_need_not_be_known() -> None:
    """A disabled node passes its items on whatever it is, and one that nothing leads to is left out."""
    made = flow([GO, node("Off", "acme.unknown", disabled=True), node("End", "noOp"), node("Left", "acme.unknown")],
                "Go -> Off", "Off -> End")  # fmt: skip
    checked = check_flow(parse_flow(made))
    assert checked.runs
    assert [one.node for one in checked.notes] == ["Left"]
