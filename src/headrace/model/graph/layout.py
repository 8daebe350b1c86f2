"""A graph with what its rules ask for all the time, worked out once."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from headrace.model.graph.nodes import Container, Edge, Graph, MapNode, Node
from headrace.model.graph.paths import join_path, scope_of, split_entry

_ENTRY = re.compile(r"\[\d+\]")


class Layout:
    """Nodes by id, edges by their ends, and the layouts of the graphs within; made from a graph that was checked."""

    def __init__(self, graph: Graph, within: Container | None = None) -> None:
        """`within`: the node whose body the graph is."""
        self.graph = graph
        self.nodes: dict[str, Node] = {node.id: node for node in graph.nodes}
        self.outgoing: dict[str, list[Edge]] = {node.id: [] for node in graph.nodes}
        self.incoming: dict[str, list[Edge]] = {node.id: [] for node in graph.nodes}
        for edge in graph.edges:
            self.outgoing[edge.source].append(edge)
            self.incoming[edge.target].append(edge)
        self.inner = {node.id: Layout(node.body, within=node) for node in graph.nodes if isinstance(node, Container)}
        #: Whether it is the body of a map, of one node and without an output of its own: its end is the entry's end.
        self.is_plain_body = isinstance(within, MapNode) and len(graph.nodes) == 1 and not graph.has_output
        self._known: dict[str, Layout] = {}

    @cached_property
    def roots(self) -> tuple[str, ...]:
        """Nodes without predecessors, in the order of the graph."""
        return tuple(name for name in self.nodes if not self.incoming[name])

    @cached_property
    def leaves(self) -> tuple[str, ...]:
        """Nodes without successors, in the order of the graph."""
        return tuple(name for name in self.nodes if not self.outgoing[name])

    @cached_property
    def closers(self) -> frozenset[str]:
        """Nodes whose ends together are the end of the graph: when all of these have ended, every node has.

        The leaves, and who leads to a node that does not wait for all its predecessors: any other has a successor that
        ends after it.
        """
        early = {edge.source for edge in self.graph.edges if self.need(edge.target) < len(self.incoming[edge.target])}
        return frozenset(early | set(self.leaves))

    def need(self, name: str) -> int:
        """Return how many edges have to lead to a node before it starts."""
        join = self.nodes[name].options.join
        return len(self.incoming[name]) if join is None else join

    def at(self, scope: str) -> Layout:
        """Return the layout of the graph at a scope of a run; KeyError when there is none."""
        if not scope:
            return self
        # Entries and rounds of one node share the layout of its body.
        names = _ENTRY.sub("", scope)
        layout = self._known.get(names)
        if layout is None:
            layout = self
            for name in names.split("/"):
                layout = layout.inner[name]
            self._known[names] = layout
        return layout

    def place(self, path: str) -> Place:
        """Return the node at a path of a run; KeyError when there is none."""
        scope = scope_of(path)
        layout = self.at(scope)
        return Place(layout, scope, layout.nodes[path[len(scope) + 1 :] if scope else path])


@dataclass(frozen=True, slots=True)
class Place:
    """A node where it stands in a run: `layout` is of its graph, `scope` the path of that ("" or "m[3]")."""

    layout: Layout
    scope: str
    node: Node

    @property
    def path(self) -> str:
        """The node's own path."""
        return join_path(self.scope, self.node.id)

    @property
    def index(self) -> int | None:
        """Which entry of a map, or round of a loop, its graph is for."""
        return split_entry(self.scope)[1]
