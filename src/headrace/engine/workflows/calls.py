"""The call of a task that a node makes, and the artifact that is its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.engine.workflows.facts import RunFacts
from headrace.engine.workflows.means import Means
from headrace.model.graph.nodes import TaskNode
from headrace.model.payload import encode_json, hash_text
from headrace.model.reference import MAX_VALUE_BYTES
from headrace.model.run import NodeEnding, NodeState


@dataclass(frozen=True, slots=True)
class Call:
    """`text` is the JSON of the arguments; `artifact` a hash of them with task and version: equal ones, equal output.

    `entries`: how many entries the map has that it is for; 0 for none.
    """

    text: str
    artifact: str
    entries: int = 0

    @classmethod
    def of(cls, node: TaskNode, args: Sequence[Any], kwargs: Mapping[str, Any], entries: int = 0) -> Call:
        """Return the call of a node. Raises InvalidInputError for arguments that are no JSON."""
        text = encode_json({"args": list(args), "kwargs": dict(kwargs)}, field="arguments", most=MAX_VALUE_BYTES)
        return cls(text, hash_text(node.task, str(node.options.version), text), entries)

    @classmethod
    def of_entry(cls, node: TaskNode, payload: Mapping[str, Any]) -> Call:
        """Return the call of a map's entry, from the arguments that were stored with its job."""
        return cls.of(node, payload["args"], payload["kwargs"], payload.get("entries", 0))


@dataclass(frozen=True, slots=True)
class Repeats:
    """What a run has of the one that it repeats."""

    facts: RunFacts
    means: Means

    async def find(self, path: str, call: Call) -> NodeEnding | None:
        """Return the end of a node there if it was the same call, unless it is to be made again."""
        before = self.facts.view.rerun_of
        if before is None or self.facts.forces(path):
            return None
        ending = (await self.means.stored(before).read([path])).get(path)
        same = ending is not None and ending.state is NodeState.SUCCESS and ending.artifact == call.artifact
        return ending if same else None
