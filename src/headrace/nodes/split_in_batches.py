"""splitInBatches: gives its items in batches to what leads back to it.

The loop itself is made by whoever compiles a flow; this says where its ports are and how large a batch is. A loop keeps
what came back in each round and gives all of it to its port "done", as version 2 and 3 do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes import checking
from headrace.nodes.base import Fault, Named, Ports, Shape, ours
from headrace.nodes.parameters import Parameters

_RESET = (
    "is not supported: leave it off; other items are looped over by another splitInBatches, or by a flow of their own"
)


class SplitInBatchesType(Named):
    """A loop over items; `batchSize` is 1 unless told, 10 in version 2 as in n8n."""

    def ports(self, parameters: Mapping[str, Any], version: float) -> Ports:
        """Return the two ports: version 3 has "done" first, version 2 "loop"."""
        return Ports(1, ("done", "loop") if version >= 3 else ("loop", "done"))

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a wrong size, and `reset`."""
        found = checking.whole(parameters, "batchSize", least=1)
        return found + checking.unused(parameters, "options.reset", _RESET)


def batch_size(at: Parameters, version: float) -> int:
    """Return how many items a batch has. Raises InvalidInputError.

    >>> batch_size(Parameters({}), 3), batch_size(Parameters({"batchSize": 5}), 3)
    (1, 5)
    """
    return at.whole("batchSize", 1 if version >= 3 else 10, least=1)


TYPE = SplitInBatchesType(
    "splitInBatches",
    ours("splitInBatches", "n8n-nodes-base.splitInBatches"),
    (2, 3),
    "a loop over items, in batches",
    Shape.LOOP,
)
