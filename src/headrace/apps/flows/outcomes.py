"""What becomes of items that failed: nothing behind them runs, they go on, or they leave by the port of errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import HeadraceError
from headrace.apps.flows.form import Policy
from headrace.nodes.base import Item, Items, NodeError

Failures = Sequence[tuple[Item, dict[str, Any]]]


def error_of(error: HeadraceError) -> dict[str, Any]:
    """Return what an item says of its error."""
    details = error.details if isinstance(error, NodeError) else {}
    return {"message": str(error), "name": error.code} | ({"details": details} if details else {})


def failed_item(item: Item, error: dict[str, Any]) -> Item:
    """Return an item that failed: what it was, with the error beside its data and among them."""
    json = {**item.get("json", {}), "error": error["message"]}
    return {**item, "json": json, "error": error}


def place(ports: Sequence[Items], failures: Failures, policy: Policy) -> list[Items]:
    """Return the items by output port, with those that failed where the policy has them.

    >>> place([[{"json": {}}]], [({"json": {"a": 1}}, {"message": "no"})], Policy.OUTPUT)[1][0]["json"]
    {'a': 1, 'error': 'no'}
    """
    out = [list(items) for items in ports]
    failed = [failed_item(item, error) for item, error in failures]
    if policy is Policy.OUTPUT:
        return [*out, failed]
    out[0] = _in_order(out[0] + failed) if failed else out[0]
    return out


def _in_order(items: Items) -> Items:
    """Return items in the order of those they came from."""

    def came_from(item: Item) -> float:
        paired = item.get("pairedItem")
        index = paired.get("item") if isinstance(paired, dict) else None
        return index if isinstance(index, int) else float("inf")

    return sorted(items, key=came_from)
