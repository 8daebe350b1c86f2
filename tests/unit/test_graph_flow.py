"""How a run moves: what the end of a node sets going, by layouts and paths, in every order in which nodes may end."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.model.graph.conditions import Condition, Never, Test
from headrace.model.graph.flow import Step, after, fails_graph, open_graph
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import (
    Edge,
    Graph,
    LoopNode,
    MapNode,
    NodeOptions,
    OnError,
    SubNode,
    TaskNode,
)
from headrace.model.run import NodeEnding, NodeState

OK, FAILED, SKIPPED, CANCELLED = NodeState.SUCCESS, NodeState.FAILED, NodeState.SKIPPED, NodeState.CANCELLED
#: How a node ends if it starts: its state, its port and its value.
End = tuple[NodeState, str, Any]
LIKED = Test(("score",), "ge", 5)


def node(name: str, **options: Any) -> TaskNode:
    """Return a task's node."""
    return TaskNode(name, "t", options=NodeOptions(**options))


def graph(*nodes: TaskNode | str, edges: str = "", more: tuple[Edge, ...] = ()) -> Graph:
    """Return a graph; `edges` as "a>b a>c:port"."""
    made = []
    for text in edges.split():
        source, _, target = text.partition(">")
        target, _, port = target.partition(":")
        made.append(Edge(source, target, port or "main"))
    return Graph(tuple(node(one) if isinstance(one, str) else one for one in nodes), (*made, *more))


class Counting:
    """Runs one graph and keeps the sums as a store does, ending its nodes in an order that is drawn."""

    def __init__(self, made: Graph, ends: Mapping[str, End], seed: int = 0) -> None:
        self.layout, self.ends, self.draw = Layout(made), ends, random.Random(seed)
        self.states: dict[str, NodeState] = {}
        self.sums: dict[str, Counter[str]] = {}
        self.waiting = [(path, True) for path in open_graph(self.layout, "")]
        self.ended = 0

    def run(self) -> dict[str, NodeState]:
        """Return the states in which all nodes ended; nothing ends twice, nothing after the end of the graph."""
        while self.waiting:
            path, led = self.waiting.pop(self.draw.randrange(len(self.waiting)))
            if path == "/":
                self.ended += 1
                assert self.states.keys() == self.layout.nodes.keys()
                continue
            state, port, value = self.ends.get(path, (OK, "main", None)) if led else (SKIPPED, "main", None)
            self._end(NodeEnding(path, state, port=port), value)
        assert self.ended == 1
        return self.states

    def _end(self, ending: NodeEnding, value: Any) -> None:
        moves = after(self.layout, "", ending.path, ending, lambda: value)
        for one in (ending, *moves.skipped):
            assert one.path not in self.states
            self.states[one.path] = one.state
        self.waiting += [(path, True) for path in moves.starts]
        for step in moves.arrivals:
            self._count(step)

    def _count(self, step: Step) -> None:
        sums = self.sums.setdefault(step.path, Counter())
        decided = sums["fired"] >= step.need or sums["count"] >= step.total
        sums.update(count=1, fired=int(step.fired))
        assert sums["count"] <= step.total
        if not decided and (sums["fired"] >= step.need or sums["count"] >= step.total):
            self.waiting.append((step.path, sums["fired"] >= step.need))


def states(made: Graph, **ends: End) -> dict[str, str]:
    """Return the states in which nodes end, the same in twenty drawn orders."""
    found = [Counting(made, ends, seed).run() for seed in range(20)]
    assert all(one == found[0] for one in found)
    return {name: found[0][name].value for name in Layout(made).nodes}


def ran(made: Graph, **ends: End) -> str:
    """Return the names of nodes that were not passed over."""
    return "".join(name for name, state in states(made, **ends).items() if state != "skipped")


@pytest.mark.parametrize(("port", "names"), [("yes", "abd"), ("no", "acd"), ("main", "a")])
def test_ports_are_if_and_else(port: str, names: str) -> None:
    """One branch runs, the other is passed over, and they meet in a node that any of them leads to."""
    made = graph("a", "b", "c", node("d", join=1), edges="a>b:yes a>c:no b>d c>d")
    assert ran(made, a=(OK, port, None)) == names


@pytest.mark.parametrize(("value", "names"), [({"score": 5}, "ab"), ({"score": 4}, "ac"), (None, "ac")])
def test_conditions_are_if_and_else(value: Any, names: str) -> None:
    """An edge leads on if its condition holds for the output."""
    conditions: tuple[Condition, Condition] = (LIKED, Never(LIKED))
    made = graph("a", "b", "c", more=(Edge("a", "b", when=conditions[0]), Edge("a", "c", when=conditions[1])))
    assert ran(made, a=(OK, "main", value)) == names


def test_all_that_depends_on_what_was_passed_over_is() -> None:
    """Down a chain, over a join of all, but not beyond a join that another leads to."""
    made = graph("a", "b", "c", "x", "all", node("any", join=1), edges="a>b:never b>c c>all x>all c>any x>any all>any")
    assert states(made) == {
        "a": "success", "b": "skipped", "c": "skipped", "x": "success", "all": "skipped", "any": "success",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("need", "failed", "runs"),
    [(None, "", True), (None, "a", False), (2, "a", True), (2, "ab", False), (1, "ab", True), (1, "abc", False),
     (3, "", True)],
)  # fmt: skip
def test_a_join_waits_for_as_many_as_it_says(need: int | None, failed: str, runs: bool) -> None:
    """All, any, or n of m; with fewer it is passed over, once all have ended."""
    made = graph("a", "b", "c", node("join", join=need), "end", edges="a>join b>join c>join join>end")
    found = states(made, **dict.fromkeys(failed, (FAILED, "main", None)))
    assert found["join"] == found["end"] == ("success" if runs else "skipped")


def test_several_edges_from_one_node_count_each() -> None:
    """Whether the node has other predecessors or not."""
    assert ran(graph("a", "b", edges="a>b a>b:yes"), a=(OK, "yes", None)) == "a"
    assert ran(graph("a", node("b", join=1), edges="a>b a>b:yes"), a=(OK, "yes", None)) == "ab"
    made = graph("a", "c", node("b", join=2), edges="a>b a>b:yes c>b")
    assert ran(made, a=(OK, "yes", None)) == "acb"
    assert ran(made, a=(OK, "yes", None), c=(FAILED, "main", None)) == "ac"


@pytest.mark.parametrize(
    ("on_error", "names"), [(OnError.STOP, "ax"), (OnError.CONTINUE, "abx"), (OnError.OUTPUT, "aex")]
)
def test_a_failure_leads_where_its_node_says(on_error: OnError, names: str) -> None:
    """Nowhere, on as if it had succeeded, or over its error edges; other branches go on."""
    edges = "a>b" if on_error is not OnError.OUTPUT else "a>b a>e:error"
    made = graph(node("a", on_error=on_error), "b", *(["e"] if on_error is OnError.OUTPUT else []), "x", edges=edges)
    assert ran(made, a=(FAILED, "main", None)) == names
    layout = Layout(made)
    assert fails_graph(layout, NodeEnding("a", FAILED)) is (on_error is OnError.STOP)
    assert not fails_graph(layout, NodeEnding("m[0]/a", SKIPPED))
    assert not fails_graph(layout, NodeEnding("a", CANCELLED))


def test_an_error_edge_goes_by_its_condition() -> None:
    """The error is the output: edges may tell kinds of errors apart. One that continues has no value."""
    late = Test(("kind",), "eq", "timeout")
    edges = (Edge("a", "b", "error", late), Edge("a", "c", "error", Never(late)))
    made = graph(node("a", on_error=OnError.OUTPUT), "b", "c", more=edges)
    assert ran(made, a=(FAILED, "main", {"kind": "timeout"})) == "ab"
    assert ran(made, a=(FAILED, "main", {"kind": "OSError"})) == "ac"
    goes_on = graph(node("a", on_error=OnError.CONTINUE), "b", more=(Edge("a", "b", when=late),))
    assert ran(goes_on, a=(FAILED, "main", {"kind": "timeout"})) == "a"


def test_what_was_cancelled_leads_nowhere() -> None:
    """Whatever the node says of errors."""
    made = graph(node("a", on_error=OnError.CONTINUE), "b", edges="a>b")
    assert states(made, a=(CANCELLED, "main", None)) == {"a": "cancelled", "b": "skipped"}


def test_conditions_alone_make_the_value_be_read() -> None:
    """A large output is not loaded to follow plain edges."""

    def read() -> Any:
        raise AssertionError("nobody should ask")

    moves = after(Layout(graph("a", "b", edges="a>b")), "", "a", NodeEnding("a", OK), read)
    assert moves.starts == ["b"]


def test_closers_are_those_whose_ends_are_the_end() -> None:
    """The leaves, and who leads to a node that does not wait for all."""
    plain = Layout(graph("a", "b", "c", edges="a>b b>c"))
    assert (plain.roots, plain.leaves, plain.closers) == (("a",), ("c",), {"c"})
    early = Layout(graph("a", "slow", node("c", join=1), edges="a>c slow>c"))
    assert early.closers == {"a", "slow", "c"}


def test_the_end_of_a_graph_waits_for_all_closers() -> None:
    """Arrivals where there are several, a start where there is one."""
    layout = Layout(graph("a", "b"))
    assert after(layout, "", "a", NodeEnding("a", OK), lambda: None).arrivals == [Step("/", 2, 2, fired=True)]
    assert after(Layout(graph("a")), "", "a", NodeEnding("a", FAILED), lambda: None).starts == ["/"]


def test_entries_of_a_plain_map_arrive_at_its_end() -> None:
    """Where the body is one node without an output of its own nothing has to be done at the end of an entry."""
    body = graph("x")
    plain = Layout(Graph((MapNode("m", [], body), SubNode("s", Graph((MapNode("m", [], body),))))))
    ended = NodeEnding("", OK)
    moves = after(plain, "m[4]", "x", ended, lambda: None, entries=9)
    assert (moves.arrivals, moves.starts) == ([Step("m/", 9, 9, fired=True)], [])
    assert after(plain, "m[0]", "x", ended, lambda: None, entries=1).starts == ["m/"]
    assert after(plain, "s/m[2]", "x", ended, lambda: None, entries=3).arrivals == [Step("s/m/", 3, 3, fired=True)]


def test_other_graphs_within_have_an_end_of_their_own() -> None:
    """Bodies of several nodes, those with an output, rounds of loops and graphs within."""
    one, two = graph("x"), graph("x", "y")
    chosen = Graph(one.nodes, output={"$index": True}, has_output=True)
    layout = Layout(
        Graph(
            (
                MapNode("out", [], chosen),
                MapNode("two", [], two),
                LoopNode("loop", one, LIKED, 3),
                SubNode("sub", one),
                MapNode("maps", [], Graph((SubNode("sub", one),))),
            )
        )
    )
    ended = NodeEnding("", OK)
    for scope in ("out[1]", "loop[1]", "sub", "maps[2]/sub"):
        assert after(layout, scope, "x", ended, lambda: None, entries=5).starts == [f"{scope}/"]
    assert after(layout, "two[0]", "x", ended, lambda: None, 5).arrivals == [Step("two[0]/", 2, 2, fired=True)]
    assert after(layout, "maps[2]", "sub", ended, lambda: None, 5).arrivals == [Step("maps/", 5, 5, fired=True)]
    assert open_graph(layout, "two[7]") == ["two[7]/x", "two[7]/y"]


def test_places_are_found_by_their_paths() -> None:
    """A node, the graph it stands in and the entry it is for; what is not there is no place."""
    inner = graph("x")
    layout = Layout(Graph((SubNode("s", Graph((MapNode("m", [], inner),))),)))
    place = layout.place("s/m[12]/x")
    assert (place.node.id, place.scope, place.index, place.path) == ("x", "s/m[12]", 12, "s/m[12]/x")
    assert layout.place("s").index is None
    for path in ("z", "s/z", "s/m[0]/z", "z[0]/x"):
        with pytest.raises(KeyError):
            layout.place(path)


def drawn(seed: int) -> tuple[Graph, dict[str, End]]:
    """Return a graph of up to 12 nodes with joins, ports and error edges of every kind, and how its nodes would end."""
    draw = random.Random(seed)
    names = [f"n{index}" for index in range(draw.randint(1, 12))]
    edges, nodes = list[Edge](), list[TaskNode]()
    for place, name in enumerate(names):
        sources = draw.sample(names[:place], draw.randint(0, min(place, 4)))
        edges += [Edge(one, name, draw.choice(["main", "main", "main", "yes", "error"])) for one in sources]
        if sources and draw.random() < 0.2:
            edges.append(Edge(sources[0], name, "other"))
        incoming = sum(edge.target == name for edge in edges)
        join = draw.randint(1, incoming) if incoming and draw.random() < 0.4 else None
        nodes.append(node(name, join=join, on_error=draw.choice(list(OnError))))
    ends = {
        name: (draw.choice([OK, OK, OK, FAILED]), draw.choice(["main", "main", "yes", "other"]), None) for name in names
    }
    return Graph(tuple(nodes), tuple(edges)), ends


def expected(made: Graph, ends: Mapping[str, End]) -> dict[str, NodeState]:
    """Return the states by the plainest reading of the rules; nodes stand in the order of their edges."""
    found: dict[str, NodeState] = {}
    errors = {one.id: one.options.on_error for one in made.nodes}
    for one in made.nodes:
        incoming = [edge for edge in made.edges if edge.target == one.id]
        ways = 0
        for edge in incoming:
            state, port = found[edge.source], ends[edge.source][1]
            if state is FAILED:
                port = {OnError.CONTINUE: "main", OnError.OUTPUT: "error", OnError.STOP: ""}[errors[edge.source]]
            ways += state is not SKIPPED and edge.port == port
        need = len(incoming) if one.options.join is None else one.options.join
        found[one.id] = ends[one.id][0] if ways >= need else SKIPPED
    return found


@pytest.mark.parametrize("block", range(4))
def test_drawn_graphs_end_as_the_rules_say_in_every_order(block: int) -> None:
    """Each node ends once, the graph once and last, in the states of a plain interpreter, whatever ends first."""
    for seed in range(block * 100, block * 100 + 100):
        made, ends = drawn(seed)
        for order in range(3):
            assert Counting(made, ends, order).run() == expected(made, ends), f"graph {seed}, order {order}"
