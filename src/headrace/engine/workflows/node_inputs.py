"""What a node of a run was given, for people: its arguments, and whose outputs they were made of.

Values in the blob storage are not fetched here: whoever shows them decides how much of them is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.engine.values import Values
from headrace.engine.workflows.inputs import Entry, Inputs
from headrace.engine.workflows.means import Means
from headrace.model.errors import HeadraceError
from headrace.model.graph.bindings import references
from headrace.model.graph.layout import Place
from headrace.model.graph.nodes import MapNode, TaskNode
from headrace.model.graph.paths import input_of, join_path, split_entry
from headrace.model.run import RunView


@dataclass(frozen=True, slots=True)
class Source:
    """Where a part of what a node was given comes from."""

    #: Path of the node that put it out; empty: it is the input of the graph that the node stands in.
    path: str
    #: JSON text, or a reference; None: it has put out nothing.
    stored: str | None


@dataclass(frozen=True, slots=True)
class NodeInputs:
    """What a node was given."""

    sources: tuple[Source, ...]
    #: As its task was called: {"args", "kwargs"}, or the value of another node; None where `known` is false.
    arguments: Any = None
    #: Whether the arguments could be made: not while something is missing, or lies in the blob storage.
    known: bool = False


async def read_inputs(means: Means, view: RunView, path: str) -> NodeInputs:
    """Return what the node, or the entry, at a path was given. Raises NotFoundError for a run that there is not."""
    facts = await means.known.get(view.id)
    stored = means.stored(view.id)
    try:
        place = facts.place(path)
    except KeyError:  # an entry or a round: what its graph was given
        found = (await stored.read([input_of(path)])).get(input_of(path))
        return NodeInputs(() if found is None else (Source("", found.output),))
    sources = await _sources(means, view, place)
    # Without a blob storage what lies there cannot be read, and is told so.
    inputs = Inputs(facts, stored, Values(None, means.stores.runs.store_id))
    try:
        return NodeInputs(sources, await _arguments(inputs, place), known=True)
    except (HeadraceError, KeyError, IndexError, TypeError):
        return NodeInputs(sources)


async def _sources(means: Means, view: RunView, place: Place) -> tuple[Source, ...]:
    names = list(dict.fromkeys(edge.source for edge in place.layout.incoming[place.node.id]))
    if isinstance(place.node, TaskNode):
        asked = references([list(place.node.args or ()), dict(place.node.kwargs)])
        names += sorted(asked.difference(names))
    paths = [join_path(place.scope, name) for name in names]
    given = input_of(place.scope)
    ended = await means.stored(view.id).read([*paths, *([given] if place.scope else [])])
    outputs = {path: ending.output for path, ending in ended.items()}
    around = view.input if not place.scope else outputs.get(given)
    first = [] if paths or around is None else [Source("", around)]
    return (*first, *(Source(path, outputs.get(path)) for path in paths))


async def _arguments(inputs: Inputs, place: Place) -> Any:
    node = place.node
    if place.layout.is_plain_body and place.index is not None and isinstance(node, TaskNode):
        args, kwargs = await _of_entry(inputs, place, node, place.index)
        return {"args": args, "kwargs": kwargs}
    if isinstance(node, TaskNode):
        args, kwargs = await inputs.arguments(place)
        return {"args": args, "kwargs": kwargs}
    if isinstance(node, MapNode):
        return await inputs.fill(place, node.over)
    given = await inputs.given(place)
    return given[0] if len(given) == 1 else given


async def _of_entry(inputs: Inputs, place: Place, node: TaskNode, index: int) -> tuple[Sequence[Any], dict[str, Any]]:
    """Return the arguments of the only node of a map's body, which nobody keeps: the map tells them."""
    around = inputs.facts.place(split_entry(place.scope)[0])
    assert isinstance(around.node, MapNode)
    entries = await inputs.fill(around, around.node.over)
    root = await inputs.values.load(inputs.facts.view.input)
    return Entry(inputs.facts, root).arguments(place.layout, node, entries[index], index)
