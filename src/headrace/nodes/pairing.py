"""Where output items came from: `pairedItem` of items that are passed on."""

from __future__ import annotations

from collections.abc import Iterable

from headrace.nodes.base import Item, Items


def passed(items: Items, indices: Iterable[int] | None = None) -> Items:
    """Return items as they are, or those at `indices`, each paired with itself.

    >>> passed([{"json": {"a": 1}}, {"json": {"a": 2}}], [1])
    [{'json': {'a': 2}, 'pairedItem': {'item': 1}}]
    """
    chosen = range(len(items)) if indices is None else indices
    return [{**items[index], "pairedItem": {"item": index}} for index in chosen]


def of_all(items: Items) -> list[Item]:
    """Return the `pairedItem` of an item that all of these became.

    >>> of_all([{"json": {}}, {"json": {}}])
    [{'item': 0}, {'item': 1}]
    """
    return [{"item": index} for index in range(len(items))]
