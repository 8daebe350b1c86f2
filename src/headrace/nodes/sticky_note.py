"""stickyNote: text beside the nodes, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes.base import Named, Ports, Shape, ours


class StickyNoteType(Named):
    """A note on the canvas: nothing leads to it or from it."""

    def ports(self, parameters: Mapping[str, Any], version: float) -> Ports:
        """Return none."""
        return Ports(0, ())


TYPE = StickyNoteType(
    "stickyNote", ours("stickyNote", "n8n-nodes-base.stickyNote"), (1, 1), "a note for people", Shape.NOTE
)
