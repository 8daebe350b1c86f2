"""What an expression sees: plain data, handed in by whoever evaluates it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

Item = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class NodeView:
    """The items of another node: all of its first port, and the one that the current item came from, if it is known."""

    name: str
    items: Sequence[Item]
    item: Item | None = None
    #: Why there is no `item`: how an expression that asks for it fails.
    why: str = ""


def _no_node(name: str) -> NodeView:
    raise LookupError(name)


@dataclass(frozen=True, slots=True)
class Scope:
    """The values of `$json`, `$input`, `$node["…"]`, `$now`, `$vars`, `$itemIndex` and the like at one item."""

    #: The current item; None where there are no items.
    item: Item | None = None
    index: int = 0
    #: The items of the input that the current one is of.
    items: Sequence[Item] = ()
    #: Returns another node's items. Raises LookupError with why there are none, as its text.
    node: Callable[[str], NodeView] = _no_node
    variables: Mapping[str, Any] = field(default_factory=dict)
    #: Aware, in the zone of the flow; None: asking for it fails.
    now: datetime | None = None
    #: `$execution`: {"id", "mode"} of the run; `$workflow`: {"name"} of the flow; `$prevNode`: {"name"} before it.
    execution: Mapping[str, Any] = field(default_factory=dict)
    workflow: Mapping[str, Any] = field(default_factory=dict)
    previous: Mapping[str, Any] = field(default_factory=dict)
    #: How often the loop around the node has begun, from 0: `$runIndex`.
    round: int = 0
