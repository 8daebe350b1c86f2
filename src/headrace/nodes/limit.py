"""limit: the first or the last items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes import checking
from headrace.nodes.base import Call, Fault, Items, Named, ours
from headrace.nodes.pairing import passed

_KEEPS = ("firstItems", "lastItems")


class LimitType(Named):
    """Keeps `maxItems` items (1 unless told) from the beginning or from the end."""

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a wrong number, or a wrong end."""
        keep = checking.one_of(parameters, "keep", _KEEPS, default=_KEEPS[0], instead={})
        return checking.whole(parameters, "maxItems", least=1) + keep

    def run(self, call: Call) -> list[Items]:
        """Return the items that are kept."""
        at = call.at()
        count, most = len(call.items), at.whole("maxItems", 1, least=1)
        if at.one_of("keep", _KEEPS, _KEEPS[0]) == "firstItems":
            return [passed(call.items, range(min(most, count)))]
        return [passed(call.items, range(max(0, count - most), count))]


TYPE = LimitType("limit", ours("limit", "n8n-nodes-base.limit"), (1, 1), "keeps the first or the last items")
