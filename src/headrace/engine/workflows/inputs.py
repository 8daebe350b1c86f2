"""What a node is given: the ends of those before it, read from whoever keeps them, filled into its templates."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from headrace.engine.values import Values
from headrace.engine.workflows.facts import RunFacts
from headrace.model.graph.bindings import Scope, arguments, fill, given, marks_in, references
from headrace.model.graph.flow import leads
from headrace.model.graph.layout import Layout, Place
from headrace.model.graph.nodes import TaskNode
from headrace.model.graph.paths import input_of, join_path, split_entry
from headrace.model.run import NodeEnding


class Endings(Protocol):
    """Where the ends of a run's nodes are read: the store, or the memory of the job that runs all of them."""

    async def read(self, paths: Sequence[str]) -> Mapping[str, NodeEnding]:
        """Return those of `paths` that ended, by path."""
        ...


@dataclass(frozen=True, slots=True)
class Inputs:
    """Fills templates of one run."""

    facts: RunFacts
    endings: Endings
    values: Values

    async def arguments(self, place: Place) -> tuple[list[Any], dict[str, Any]]:
        """Return the positional and keyword arguments of a task's node."""
        node = place.node
        assert isinstance(node, TaskNode)
        if node.args is None and not node.kwargs:
            return await self.given(place), {}
        return arguments(place.layout, node, await self._scope(place, [list(node.args or ()), dict(node.kwargs)]))

    async def given(self, place: Place) -> list[Any]:
        """Return the arguments of a node without any of its own: what those that led to it have put out."""
        sources = dict.fromkeys(edge.source for edge in place.layout.incoming[place.node.id])
        found = await self._read(place.layout, place.scope, sources, leading_to=place.node.id)
        graph_input = None if sources else await self._graph_input(place.scope)
        scope = Scope(input=graph_input, index=place.index, run={}, outputs=found)
        return given(place.layout, place.node.id, scope)

    async def fill(self, place: Place, template: Any) -> Any:
        """Return a template with its values."""
        return fill(template, await self._scope(place, template))

    async def fill_without(self, place: Place, template: Any, without: Collection[str]) -> tuple[Any, tuple[str, ...]]:
        """Return a template with its values, and the nodes it names that have put out nothing.

        Those of `without` are among these, even if they have meanwhile.
        """
        scope = await self._scope_of(place.layout, place.scope, template, without)
        return fill(template, scope), tuple(sorted(references(template) - scope.outputs.keys()))

    async def fill_of_graph(self, layout: Layout, scope: str, template: Any) -> Any:
        """Return the output template of the graph at a scope with its values."""
        return fill(template, await self._scope_of(layout, scope, template))

    async def start_value(self, place: Place, template: Any, *, has_template: bool) -> Any:
        """Return what a graph within is given: by its template, or what a task in its place would be given."""
        if has_template:
            return await self.fill(place, template)
        arguments = await self.given(place)
        return arguments[0] if arguments else None

    async def _scope(self, place: Place, template: Any) -> Scope:
        return await self._scope_of(place.layout, place.scope, template)

    async def _scope_of(self, layout: Layout, scope: str, template: Any, without: Collection[str] = ()) -> Scope:
        """Return where a template takes its values from; what it does not ask for is not read: it may be large."""
        marks = marks_in(template)
        root = await self.values.load(self.facts.view.input) if "$run" in marks else None
        return Scope(
            input=await self._graph_input(scope) if "$input" in marks else None,
            index=split_entry(scope)[1],
            run=self.facts.scope_facts(root),
            outputs=await self._read(layout, scope, references(template).difference(without)),
        )

    async def _read(
        self, layout: Layout, scope: str, names: Iterable[str], leading_to: str | None = None
    ) -> dict[str, Any]:
        """Return the outputs of nodes by id; with `leading_to` of those alone that led to that node."""
        paths = {name: join_path(scope, name) for name in names}
        ended = await self.endings.read(list(paths.values())) if paths else {}
        outputs = {}
        for name, path in paths.items():
            ending = ended.get(path)
            if ending is None or ending.output is None:
                continue
            value = await self.values.load(ending.output)
            if leading_to is None or _led(layout, name, leading_to, ending, value):
                outputs[name] = value
        return outputs

    async def _graph_input(self, scope: str) -> Any:
        """Return what the graph at a scope was given."""
        if not scope:
            return await self.values.load(self.facts.view.input)
        ending = (await self.endings.read([input_of(scope)])).get(input_of(scope))
        return None if ending is None or ending.output is None else await self.values.load(ending.output)


def _led(layout: Layout, source: str, target: str, ending: NodeEnding, value: Any) -> bool:
    edges = [edge for edge in layout.outgoing[source] if edge.target == target]
    return any(leads(layout, edge, ending, lambda: value) for edge in edges)


@dataclass(frozen=True, slots=True)
class Entry:
    """Fills templates of a map's body for one entry, before anything of it is stored."""

    facts: RunFacts
    root: Any

    def arguments(self, layout: Layout, node: TaskNode, entry: Any, index: int) -> tuple[list[Any], dict[str, Any]]:
        """Return the arguments of the only node of a body."""
        scope = Scope(input=entry, index=index, run=self.facts.scope_facts(self.root), outputs={})
        return arguments(layout, node, scope)
