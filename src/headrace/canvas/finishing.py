"""From a graph being made to the graph: references become templates, and edges where nothing says the order yet."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headrace.canvas.drafts import Draft, End, Flow, Sketch, name_drafts
from headrace.canvas.parts import GIVEN, Canvas, Given
from headrace.canvas.placing import place
from headrace.canvas.references import Reference, Source, fill, input_, references
from headrace.model.errors import InvalidInputError
from headrace.model.graph.nodes import Edge, Graph, Node, NodeOptions, TaskNode


def finish(graph: Sketch, output: Any = GIVEN) -> Graph:
    """Return the graph. `output`: a template; GIVEN: what comes behind all of it. Raises InvalidInputError."""
    _add_referenced(graph, output)
    name_drafts(graph.drafts)
    for draft in graph.drafts:
        if isinstance(draft.body, Sketch):
            draft.body = finish(draft.body)
    nodes = tuple(_Maker(graph, draft).node() for draft in graph.drafts)  # before the edges: references make some
    edges = tuple(
        Edge(end.draft.id, draft.id, end.port, end.when) for draft in graph.drafts for end in graph.incoming[draft]
    )
    made = Graph(nodes, edges)
    if output is GIVEN and _is_last(graph):
        return made
    assert graph.end is not None
    shown = _behind(graph.end) if output is GIVEN else output
    known = _Maker(graph, Draft(TaskNode, "output")).template
    return replace(made, output=fill(shown, known, "output"), has_output=True)


def _add_referenced(graph: Sketch, output: Any) -> None:
    """Add the parts that references are to and that stand nowhere yet; they may have references themselves."""
    for reference in references(output):
        _find(graph, reference)
    for draft in graph.drafts:  # which grows
        for reference in references(list(draft.templates.values())):
            _find(graph, reference)


def _find(graph: Sketch, reference: Reference) -> None:
    part = reference.of
    if not isinstance(part, Canvas) or part.token in graph.placed:
        return
    if part.token in (graph.whole or graph).tokens:
        rule = (
            "is outside of the map, loop or workflow within that refers to it, or inside of one: what stands there is "
            "known there only; make it part of what that is given, or of its output"
        )
        raise InvalidInputError("reference", rule, part)
    place(graph, part, Flow(graph.start.value if isinstance(graph.start.value, Given) else GIVEN))


def _is_last(graph: Sketch) -> bool:
    """Whether the output is that of the one node that nothing follows."""
    end = graph.end
    if end is None or len(end.ends) != 1 or not isinstance(end.value, Reference) or end.value.path:
        return False
    leading = {way.draft for ways in graph.incoming.values() for way in ways}
    leaves = [draft for draft in graph.drafts if draft not in leading]
    return leaves == [end.ends[0].draft] and end.value.of is leaves[0]


def _behind(flow: Flow) -> Any:
    return input_ if isinstance(flow.value, Given) else flow.value


class _Maker:
    """Makes one node, and remembers the nodes that it refers to."""

    def __init__(self, graph: Sketch, draft: Draft) -> None:
        self.graph, self.draft = graph, draft
        self.used: list[Draft] = []

    def node(self) -> Node:
        """Return the node; edges are added to the graph from those that it refers to."""
        draft = self.draft
        field = f"node {draft.id}"
        made = {name: fill(value, self.template, f"{field}: {name}") for name, value in draft.templates.items()}
        if draft.kind is TaskNode:
            made["args"] = None if made["args"] is None else tuple(made["args"])
            made["kwargs"] = tuple(made["kwargs"].items())
        self._follow()
        if draft.body is not None:
            made["body"] = draft.body
        options = NodeOptions(**{**draft.options, "join": self._join()})
        return draft.kind(id=draft.id, options=options, **draft.fields, **made)

    def template(self, reference: Reference) -> Any:
        """Return the template of a reference."""
        path = list(reference.path)
        match reference.source:
            case Source.INPUT:
                return {"$input": path}
            case Source.RUN:
                return {"$run": path}
            case Source.INDEX:
                return {"$index": True}
            case Source.PARAMETER:
                own = self.graph.whole is None
                return {"$input": [reference.of, *path]} if own else {"$run": ["input", reference.of, *path]}
        of = reference.of
        if isinstance(of, str):
            of = self._named(of)
        if isinstance(of, Draft):
            self.used.append(of)
            return {"$node": of.id, "path": path} if path else {"$node": of.id}
        return self._within(self._placed(of).value, reference)

    def _named(self, name: str) -> Draft:
        for draft in self.graph.drafts:
            if draft.id == name:
                return draft
        known = ", ".join(draft.id for draft in self.graph.drafts)
        raise InvalidInputError("ref", f"must name a node beside it, which are {known}", name)

    def _placed(self, part: Canvas) -> Flow:
        flow = self.graph.placed[part.token]
        if flow is None:
            rule = "stands more than once in the workflow: refer to one of them by its name, ref(NAME)"
            raise InvalidInputError("reference", rule, part)
        return flow

    def _within(self, value: Any, reference: Reference) -> Any:
        """Return the template of what lies at a reference's path of the value of a part."""
        for position, key in enumerate(reference.path):
            if isinstance(value, Reference):
                return self.template(replace(value, path=(*value.path, *reference.path[position:])))
            if not isinstance(value, list) or not isinstance(key, int) or not -len(value) <= key < len(value):
                size = len(value) if isinstance(value, list) else 0
                raise InvalidInputError("reference", f"must be a position in the {size} outputs of its part", key)
            value = value[key]
        return fill(input_ if isinstance(value, Given) else value, self.template, "reference")

    def _follow(self) -> None:
        """Let the node follow those that it refers to and that do not stand before it already."""
        draft, ways = self.draft, self.graph.incoming[self.draft]
        for other in dict.fromkeys(self.used):
            if any(way.draft is other for way in ways) or other in _before(self.graph, draft):
                continue
            field = f"node {draft.id}"
            if other is draft or draft in _before(self.graph, other):
                raise InvalidInputError(field, "must not refer to itself, or to what follows it", other.id)
            if draft.options.get("join") is not None:
                rule = "waits for some of its predecessors only, and must not refer to a part that is none of them"
                raise InvalidInputError(field, rule, other.id)
            ways.append(End(other))

    def _join(self) -> int | None:
        join: int | None = self.draft.options.get("join")
        ways = self.graph.incoming[self.draft]
        most = len({way.draft for way in ways})
        if join is not None and join > most:
            rule = f"of node {self.draft.id} must be at most {most}, the number of its predecessors"
            raise InvalidInputError("join", rule, join)
        return None if join == len(ways) else join


def _before(graph: Sketch, draft: Draft) -> set[Draft]:
    """Return the nodes that lead to a node, over others too."""
    found: set[Draft] = set()
    todo = [draft]
    while todo:
        new = {way.draft for way in graph.incoming[todo.pop()]} - found
        found |= new
        todo += new
    return found
