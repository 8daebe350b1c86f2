"""The entries of a map: which it has, how they start part by part, and how those end that cannot start."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from headrace.engine.workflows.facts import RunFacts, Start
from headrace.engine.workflows.inputs import Entry, Inputs
from headrace.engine.workflows.moving import Moved, end_node, failed_ending, open_scope
from headrace.model.errors import FenceLostError, HeadraceError, InvalidInputError
from headrace.model.graph.flow import Moves, count_or_start, is_plain_entry
from headrace.model.graph.layout import Place
from headrace.model.graph.nodes import MapNode, TaskNode
from headrace.model.graph.paths import end_of, input_of, join_path, split_entry
from headrace.model.job import JobError
from headrace.model.payload import encode_json
from headrace.model.reference import MAX_VALUE_BYTES
from headrace.model.run import NodeEnding, NodeState

#: Outputs of all entries together above this many characters: the longest of them are kept as blobs of their own, ...
MOST_CHARS = MAX_VALUE_BYTES // 4
#: ... unless they are hardly longer than a reference.
SHORT_CHARS = 1024


@dataclass(frozen=True, slots=True)
class Begun:
    """What a map began with. `without`: nodes that its `over` names and that had put out nothing by then.

    It has the same entries however often it asks for them: these stay left out, whatever they put out later.
    """

    count: int
    without: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The JSON text that is kept of it.

        >>> Begun.parse(Begun(3, ("late",)).text)
        Begun(count=3, without=('late',))
        """
        return encode_json([self.count, *self.without], field="entries")

    @classmethod
    def parse(cls, text: str) -> Begun:
        """Return the inverse of `text`."""
        count, *without = json.loads(text)
        return cls(count, tuple(without))


@dataclass(frozen=True, slots=True)
class Maps:
    """Starts the entries of the maps of one run. `chunk`: so many at once; None: all of them."""

    facts: RunFacts
    inputs: Inputs
    chunk: int | None

    async def begun(self, path: str) -> Begun | None:
        """Return what the map at a path began with; None where it has not begun, or the node is no map."""
        if not isinstance(self.facts.place(path).node, MapNode):
            return None
        ending = (await self.inputs.endings.read([input_of(path)])).get(input_of(path))
        return None if ending is None or ending.output is None else Begun.parse(ending.output)

    async def count(self, path: str) -> int:
        """Return how many entries the map at a path began with; 0 as `begun` has None."""
        begun = await self.begun(path)
        return 0 if begun is None else begun.count

    async def start(self, place: Place, node: MapNode, first: int) -> Moved | None:
        """Return the start of the entries from `first` on; None for an empty list."""
        before = await self.begun(place.path)
        entries, without = await self.inputs.fill_without(place, node.over, before.without if before else ())
        if not isinstance(entries, list):
            raise InvalidInputError(f"over of node {place.path}", "must be a list", entries)
        if not entries:
            return None
        begun = Begun(len(entries), without)
        moved = Moved([NodeEnding(input_of(place.path), NodeState.SUCCESS, begun.text)])
        root = await self.inputs.values.load(self.facts.view.input)
        for index in self._part(begun, first):
            await self._start_entry(moved, f"{place.path}[{index}]", index, entries, root)
        self._go_on(moved, place.path, begun, first)
        return moved

    def fail_part(self, path: str, begun: Begun, first: int, state: NodeState, error: JobError | None) -> Moved:
        """Return the end, by `state`, of the entries from `first` on that would have started together.

        The map itself goes on: entries of it may run.
        """
        moved = Moved()
        for index in self._part(begun, first):
            moved.join(self._failed(f"{path}[{index}]", begun.count, state, error))
        self._go_on(moved, path, begun, first)
        return moved

    async def store_list(self, texts: Sequence[str]) -> str:
        """Return what stands for the list of the outputs of all entries, as they were stored.

        As texts, references among them: nobody has to hold all values at once.
        """
        values, stored, apart = self.inputs.values, list(texts), _to_keep_apart(texts)
        references = await values.store_apart(self.facts.id, [texts[index] for index in apart])
        for index, reference in zip(apart, references, strict=True):
            stored[index] = reference
        return await values.store_composed(self.facts.id, f"[{','.join(stored)}]")

    def _part(self, begun: Begun, first: int) -> range:
        return range(first, begun.count if self.chunk is None else min(first + self.chunk, begun.count))

    def _go_on(self, moved: Moved, path: str, begun: Begun, first: int) -> None:
        """Let another job of the map go on behind a part."""
        last = self._part(begun, first).stop
        if last < begun.count:
            moved.starts.append(Start(path, f'{{"args":[{last}],"kwargs":{{}}}}'))

    async def _start_entry(self, moved: Moved, scope: str, index: int, entries: Sequence[Any], root: Any) -> None:
        """Start an entry; one that cannot start has failed, as one whose handler did."""
        try:
            await self._open_entry(moved, scope, index, entries, root)
        except HeadraceError as error:
            if error.transient or isinstance(error, FenceLostError):
                raise
            why = JobError(error.code, str(error))
            moved.join(self._failed(scope, len(entries), NodeState.FAILED, why))

    async def _open_entry(self, moved: Moved, scope: str, index: int, entries: Sequence[Any], root: Any) -> None:
        layout = self.facts.layout.at(scope)
        only = layout.graph.nodes[0]
        if isinstance(only, TaskNode) and is_plain_entry(self.facts.layout, scope):
            args, kwargs = Entry(self.facts, root).arguments(layout, only, entries[index], index)
            call = {"args": args, "kwargs": kwargs, "entries": len(entries)}
            moved.starts.append(Start(join_path(scope, only.id), await self._store(call, index)))
            return
        moved.join(open_scope(self.facts, scope, await self._store(entries[index], index)))

    async def _store(self, value: Any, index: int) -> str:
        text = encode_json(value, field=f"entry {index}", most=MAX_VALUE_BYTES)
        return await self.inputs.values.store(self.facts.id, text)

    def _failed(self, scope: str, total: int, state: NodeState, error: JobError | None) -> Moved:
        """Return the end of an entry of which nothing has started."""
        layout = self.facts.layout
        if not is_plain_entry(layout, scope):
            return end_entry(NodeEnding(scope, state, error=error), total)
        path = join_path(scope, layout.at(scope).graph.nodes[0].id)
        failed = state is NodeState.FAILED
        ending = failed_ending(self.facts, path, error) if failed else NodeEnding(path, state, error=error)
        return end_node(self.facts, ending, lambda: None, total)


def _to_keep_apart(texts: Sequence[str]) -> list[int]:
    """Return the places of the longest texts: so many that the others together are not too long for one blob."""
    found, over = list[int](), sum(map(len, texts)) - MOST_CHARS
    if over <= 0:
        return found
    for index in sorted(range(len(texts)), key=lambda index: len(texts[index]), reverse=True):
        if over <= 0 or len(texts[index]) <= SHORT_CHARS:
            break
        found.append(index)
        over -= len(texts[index])
    return found


def end_entry(ending: NodeEnding, total: int) -> Moved:
    """Return the end of one of `total` entries of a map whose body is more than one node."""
    moves = Moves()
    count_or_start(moves, end_of(split_entry(ending.path)[0]), total)
    moved = Moved([ending])
    moved.add(moves)
    return moved
