"""From which node a run is repeated: a path of the run, as `run show` writes it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from uuid import UUID

from headrace.engine.workflows.maps import Begun
from headrace.model.errors import InvalidInputError
from headrace.model.graph.layout import Layout
from headrace.model.graph.nodes import LoopNode, MapNode, Node
from headrace.model.graph.paths import input_of, join_path
from headrace.model.run import NodeEnding
from headrace.ports.run_store import RunStore

#: A name, and the entry or round of it, counted from 0.
_STEP = re.compile(r"([^\[\]]+)(?:\[(0|[1-9][0-9]{0,8})\])?")


@dataclass(frozen=True, slots=True)
class Origin:
    """A path of a run that is to be repeated from there."""

    runs: RunStore
    run_id: UUID
    path: str

    async def check(self, layout: Layout) -> None:
        """Raise InvalidInputError unless the path is of a node of the run's graph, or of an entry or round it had."""
        scope, steps = "", self.path.split("/")
        for number, step in enumerate(steps, 1):
            found = _STEP.fullmatch(step)
            node = None if found is None else layout.nodes.get(found[1])
            if found is None or node is None:
                raise self._wrong(f"must be a node of the run, here one of {_known(scope, layout)}")
            within = number < len(steps)
            scope = await self._descend(join_path(scope, node.id), node, found[2], within=within)
            if within:
                if node.id not in layout.inner:
                    raise self._wrong(f"must end with {scope}: that has no nodes within it")
                layout = layout.inner[node.id]

    async def _descend(self, path: str, node: Node, index: str | None, *, within: bool) -> str:
        """Return the path of a node, with the index that it has to have or must not have."""
        counted = isinstance(node, MapNode | LoopNode)
        if index is None:
            if counted and within:
                raise self._wrong(f"must say which entry or round of {path}, as {path}[0]")
            return path
        if not counted:
            raise self._wrong(f"must not have an index at {path}, which is no map or loop")
        scope = f"{path}[{index}]"
        if not await self._had(path, node, int(index)):
            raise self._wrong(f"must be of what the run had: there is no {scope}, counted from 0")
        return scope

    async def _had(self, path: str, node: Node, index: int) -> bool:
        """Whether the run had an entry of a map or a round of a loop."""
        if isinstance(node, LoopNode):
            return await self._given(f"{path}[{index}]") is not None
        begun = await self._given(path)
        return begun is not None and begun.output is not None and index < Begun.parse(begun.output).count

    async def _given(self, scope: str) -> NodeEnding | None:
        return next(iter(await self.runs.read_nodes(self.run_id, [input_of(scope)])), None)

    def _wrong(self, rule: str) -> InvalidInputError:
        return InvalidInputError("node", rule, self.path)


def _known(scope: str, layout: Layout) -> str:
    """Return the paths of the nodes of the graph at a scope.

    >>> from headrace.model.graph.nodes import Graph, TaskNode
    >>> _known("each[3]", Layout(Graph((TaskNode("parse", "parse"), TaskNode("count", "count")))))
    'each[3]/parse, each[3]/count'
    """
    return ", ".join(join_path(scope, name) for name in layout.nodes)
