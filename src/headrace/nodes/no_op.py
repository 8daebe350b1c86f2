"""noOp: passes its items on."""

from __future__ import annotations

from headrace.nodes.base import Call, Items, Named, ours
from headrace.nodes.pairing import passed


class NoOpType(Named):
    """Does nothing: a place where branches meet, or one that ends on purpose."""

    def run(self, call: Call) -> list[Items]:
        """Return the items."""
        return [passed(call.items)]


TYPE = NoOpType("noOp", ours("noOp", "n8n-nodes-base.noOp"), (1, 9), "passes items on as they are")
