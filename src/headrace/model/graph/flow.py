"""How a run moves: what the end of a node sets going. Both levels go by these rules; they differ in who counts.

A node that ended leads on over some of its edges and not over others; either way it *arrives* at each successor, and
at the end of its graph if the end waits for it. A successor that has had all it needs starts; one that can no longer
get it is passed over, which is an end as any other. Where one arrival is all there is to count, that is decided here;
what has to be counted is left to whoever keeps the sums: the store at node level, the run's own job at workflow level.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from headrace.model.graph.holding import holds
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import ERROR_PORT, MAIN_PORT, Edge, OnError
from headrace.model.graph.paths import end_of, join_path, split_entry
from headrace.model.run import NodeEnding, NodeState


@dataclass(frozen=True, slots=True)
class Step:
    """One arrival at a path: the first four facts of `run.Arrival`."""

    path: str
    total: int
    need: int
    fired: bool


@dataclass(slots=True)
class Moves:
    """What an end sets going: nodes passed over at once, arrivals to be counted, and paths that start now."""

    skipped: list[NodeEnding] = field(default_factory=list)
    arrivals: list[Step] = field(default_factory=list)
    starts: list[str] = field(default_factory=list)


#: Returns the value of an ending's output; asked only where an edge has a condition.
ReadValue = Callable[[], Any]


def leads(layout: Layout, edge: Edge, ending: NodeEnding, read: ReadValue) -> bool:
    """Whether a node that ended leads on over one of its edges."""
    port: str | None = None
    match ending.state, layout.nodes[edge.source].options.on_error:
        case NodeState.SUCCESS, _:
            port = ending.port
        case NodeState.FAILED, OnError.CONTINUE:
            port, read = MAIN_PORT, _nothing
        case NodeState.FAILED, OnError.OUTPUT:
            port = ERROR_PORT
    return edge.port == port and (edge.when is None or holds(edge.when, read()))


def open_graph(layout: Layout, scope: str) -> list[str]:
    """Return the paths that start when the graph at a scope does."""
    return [join_path(scope, name) for name in layout.at(scope).roots]


def after(  # noqa: PLR0913 - facts of one end
    root: Layout, scope: str, name: str, ending: NodeEnding, read: ReadValue, entries: int = 0
) -> Moves:
    """Return what the end of node `name` of the graph at `scope` sets going.

    `entries`: how many entries the map has that the graph is the body of.
    """
    layout, moves = root.at(scope), Moves()
    ended = deque([(name, ending, read)])
    while ended:
        source, how, value = ended.popleft()
        for edge_target in dict.fromkeys(edge.target for edge in layout.outgoing[source]):
            fired = [leads(layout, edge, how, value) for edge in layout.outgoing[source] if edge.target == edge_target]
            passed = _arrive(layout, scope, edge_target, fired, moves)
            if passed is not None:
                ended.append((edge_target, passed, _nothing))
        if source in layout.closers:
            _close(root, scope, len(layout.closers), entries, moves)
    return moves


def _arrive(layout: Layout, scope: str, name: str, fired: list[bool], moves: Moves) -> NodeEnding | None:
    """Arrive at a node by several edges of one source; return its end where it is passed over at once."""
    path, total, need = join_path(scope, name), len(layout.incoming[name]), layout.need(name)
    if len(fired) < total:
        moves.arrivals += [Step(path, total, need, one) for one in fired]
        return None
    if sum(fired) >= need:
        moves.starts.append(path)
        return None
    ending = NodeEnding(path, NodeState.SKIPPED)
    moves.skipped.append(ending)
    return ending


def _close(root: Layout, scope: str, closers: int, entries: int, moves: Moves) -> None:
    """Arrive at the end of a graph, or, of a body of one node, at the end of the map that it is the body of."""
    if closers > 1 or not is_plain_entry(root, scope):
        count_or_start(moves, end_of(scope), closers)
        return
    count_or_start(moves, end_of(split_entry(scope)[0]), entries)


def count_or_start(moves: Moves, path: str, total: int) -> None:
    """Arrive at an end that waits for `total` arrivals, all of which lead to it."""
    if total > 1:
        moves.arrivals.append(Step(path, total, total, fired=True))
    else:
        moves.starts.append(path)


def is_plain_entry(root: Layout, scope: str) -> bool:
    """Whether a scope is an entry of a map whose body is one node without an output of its own.

    Its end is the entry's end, so that nothing has to be done between.
    """
    return scope.endswith("]") and root.at(scope).is_plain_body


def _nothing() -> Any:
    return None


def fails_graph(layout: Layout, ending: NodeEnding) -> bool:
    """Whether a node's end fails the graph it stands in. `ending.path` is the node's."""
    name = ending.path.rpartition("/")[2]
    return ending.state is NodeState.FAILED and layout.nodes[name].options.on_error is OnError.STOP
