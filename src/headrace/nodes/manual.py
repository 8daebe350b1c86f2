"""manual: begins a run that a person, a program or another run starts."""

from __future__ import annotations

from headrace.nodes.base import Call, Items, Named, Shape, ours


class ManualType(Named):
    """Gives the items that the run was started with; one empty item without any."""

    def run(self, call: Call) -> list[Items]:
        """Return the items."""
        return [call.given or [{"json": {}}]]


TYPE = ManualType(
    "manual",
    ours(
        "manual",
        "headrace.manualTrigger",
        "n8n-nodes-base.manualTrigger",
        "n8n-nodes-base.start",
        "@n8n/n8n-nodes-langchain.manualChatTrigger",
    ),
    (1, 1.1),
    "begins a run by hand: gives the items of its start",
    Shape.TRIGGER,
)
