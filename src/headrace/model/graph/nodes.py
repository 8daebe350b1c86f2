"""Nodes, edges and graphs as values. A graph is made whole and checked (`checks`), and never changes.

A *template* is JSON data in which `{"$node": ID, "path": […]}`, `{"$input": […]}`, `{"$index": true}` and
`{"$run": […]}` stand for values of the run; see `bindings`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any

from headrace.model.graph.conditions import Condition

MAIN_PORT, ERROR_PORT = "main", "error"


class OnError(StrEnum):
    """What a failed node does to what comes behind it."""

    #: nothing behind it runs, and the graph fails in the end; branches that do not depend on it go on
    STOP = "stop"
    #: its edges lead on as if it had succeeded, with no value
    CONTINUE = "continue"
    #: its edges of port "error" lead on, with {"kind", "message"}; the graph does not fail by it
    OUTPUT = "output"


class OnOpen(StrEnum):
    """What becomes of a node whose circuit breaker is open."""

    WAIT = "wait"
    FAIL = "fail"
    SKIP = "skip"


@dataclass(frozen=True, slots=True)
class RetryRule:
    """The retry policy of one node, in place of its task's. `on` has names of exception classes; empty: all."""

    strategy: str = "exponential_backoff"  # or fixed, linear
    max_tries: int = 4
    base: timedelta = timedelta(seconds=1)
    cap: timedelta = timedelta(minutes=2)
    jitter: bool = True
    on: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NodeOptions:
    """What every kind of node may have."""

    on_error: OnError = OnError.STOP
    #: How many of its incoming edges must lead to it; None: all. With fewer it starts as soon as they do.
    join: int | None = None
    retry: RetryRule | None = None
    timeout: timedelta | None = None
    #: 0 (earliest) to 9; None: by the strategy.
    priority: int | None = None
    #: Raise it when the same arguments should give another output from now on.
    version: int = 1
    #: Estimated time; None: measured from history.
    estimate: timedelta | None = None
    on_open: OnOpen | None = None


@dataclass(frozen=True, slots=True)
class TaskNode:
    """Calls a registered task. Without arguments it is given its predecessors' output, or the graph's input."""

    id: str
    task: str
    args: tuple[Any, ...] | None = None
    kwargs: tuple[tuple[str, Any], ...] = ()
    options: NodeOptions = field(default_factory=NodeOptions)


@dataclass(frozen=True, slots=True)
class ValueNode:
    """Ends at once with a value: a template, or, without one, what a task would be given."""

    id: str
    value: Any = None
    given: bool = False
    options: NodeOptions = field(default_factory=NodeOptions)


@dataclass(frozen=True, slots=True)
class WaitNode:
    """Waits for a signal, a time, or whichever comes first; its output is the signal's payload.

    A signal that does not come in time fails the node with kind `signal_timeout`; a time alone does not.
    """

    id: str
    #: Template of the signal's key, text.
    signal: Any = None
    timeout: timedelta | None = None
    options: NodeOptions = field(default_factory=NodeOptions)


@dataclass(frozen=True, slots=True)
class MapNode:
    """Runs `body` for each entry of a list that is known when the node starts; its output is the list of outputs.

    The input of the body is the entry. `max_failed`: so many entries may fail, None: any number; what failed or was
    passed over stands as null.
    """

    id: str
    over: Any
    body: Graph
    max_failed: int | None = 0
    options: NodeOptions = field(default_factory=NodeOptions)


@dataclass(frozen=True, slots=True)
class LoopNode:
    """Runs `body` again on its own output while a condition holds for that, at most `most` times.

    The first input is the template `start`, or what a task would be given. Its output is the body's last one.
    """

    id: str
    body: Graph
    again: Condition
    most: int
    start: Any = None
    given: bool = False
    options: NodeOptions = field(default_factory=NodeOptions)


@dataclass(frozen=True, slots=True)
class SubNode:
    """Runs a whole graph as one node. Its input is the template `start`, or what a task would be given."""

    id: str
    body: Graph
    start: Any = None
    given: bool = False
    options: NodeOptions = field(default_factory=NodeOptions)


Node = TaskNode | ValueNode | WaitNode | MapNode | LoopNode | SubNode
#: Kinds that have a graph within them.
Container = MapNode | LoopNode | SubNode

_KINDS = {
    TaskNode: "task",
    ValueNode: "value",
    WaitNode: "wait",
    MapNode: "map",
    LoopNode: "loop",
    SubNode: "workflow",
}


def kind_of(node: Node) -> str:
    """Return the word for a node's kind, as the JSON form has it.

    >>> kind_of(TaskNode("a", "fetch"))
    'task'
    """
    return _KINDS[type(node)]


@dataclass(frozen=True, slots=True)
class Edge:
    """Leads from a node to another, by an output port and under a condition on the output."""

    source: str
    target: str
    port: str = MAIN_PORT
    when: Condition | None = None


@dataclass(frozen=True, slots=True)
class Graph:
    """Nodes and edges. `output` is a template; without it the output is that of the last nodes, see `flow`."""

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...] = ()
    output: Any = None
    has_output: bool = False
    #: Words that influence how it is scheduled, such as "schedule:node_level".
    tags: tuple[str, ...] = ()
    #: The workflow that is started when a run of this one fails.
    on_failure: str | None = None
    #: What it was made from, as JSON: kept and given back, and not looked at.
    source: Any = None
