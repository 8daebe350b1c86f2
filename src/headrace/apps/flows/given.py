"""What the tasks of a flow are given, and how items of other nodes are found from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from headrace.apps.flows.form import Policy
from headrace.model.expressions.scope import NodeView, Scope
from headrace.nodes.base import Item, Items

#: The member of an item that says which items of traced nodes it came from: {name: [port, index]}, null where several.
TRACE = "trace"
Trace = Mapping[str, Any]
T = TypeVar("T")


@dataclass(slots=True)
class Given:
    """One node's call: what it is, and the items it is given. Made of what `compiling` wrote."""

    node: Mapping[str, Any]
    #: Items by input port, as people know them, and the traces of each.
    inputs: list[Items]
    traces: list[list[Trace]]
    #: What the nodes put out that expressions refer to: all ports, and whether it ran; nulls for one passed over.
    refs: Mapping[str, Mapping[str, Any] | None]
    around: Mapping[str, Any]
    run_id: str = ""
    now: datetime | None = None
    #: Items of other nodes without their traces, by name: made once for all items of this node.
    _plain: dict[str, Items] = field(default_factory=dict)

    @classmethod
    def of(cls, given: Mapping[str, Any], run_id: str, usual: Mapping[str, Any] | None = None) -> Given:
        """Read what a task was given; a node that runs once is given the first item alone.

        `usual`: `$vars` of a run that was started with none.
        """
        inputs = [flat(sources) for sources in given["inputs"]]
        if given["node"].get("once") and not given["node"].get("disabled"):
            inputs = [items[:1] for items in inputs]
        traces = [[item.get(TRACE, {}) for item in items] for items in inputs]
        around = given["around"]
        if around.get("vars") is None:
            around = around | {"vars": dict(usual or {})}
        return cls(given["node"], [plain_items(items) for items in inputs], traces, given["refs"], around, run_id)

    @property
    def items(self) -> Items:
        """The items of the first input."""
        return self.inputs[0] if self.inputs else []

    @property
    def has_items(self) -> bool:
        """Whether any input has any."""
        return any(self.inputs)

    @property
    def policy(self) -> Policy:
        """What becomes of items that failed."""
        return Policy(self.node.get("policy", Policy.STOP))

    @property
    def zone(self) -> ZoneInfo:
        """The zone of the flow's clocks."""
        return ZoneInfo(self.node.get("timezone", "UTC"))

    @property
    def _mode(self) -> str:
        """How the run was started: as its input says, or, where that is the report of a failure, by that."""
        told: str | None = self.around.get("mode")
        return told or ("error" if all(self.around.get("failed") or [None]) else "manual")

    def scope_of(self, index: int, port: int = 0) -> Scope:
        """Return what expressions see at an item of an input port."""
        items = self.inputs[port] if port < len(self.inputs) else []
        item = items[index] if index < len(items) else None
        node = self.node
        return Scope(
            item=item, index=index, items=items, node=self._finder({} if item is None else self.traces[port][index]),
            variables=self.around.get("vars") or {},
            now=None if self.now is None else self.now.astimezone(self.zone),
            execution={"id": self.run_id, "mode": self._mode},
            workflow={"name": node.get("flow", "")}, previous={"name": node.get("before", "")},
            round=self.around.get("round") or 0,
        )  # fmt: skip

    def _finder(self, trace: Trace) -> Callable[[str], NodeView]:
        def find(name: str) -> NodeView:
            put_out = self.refs.get(name)
            if put_out is None or not put_out["ran"]:
                raise LookupError(f"node {name!r} did not run")
            ports, port = put_out["out"], self.node.get("sees", {}).get(name, 0)
            if name not in self._plain:
                self._plain[name] = plain_items(ports[port] if port < len(ports) else [])
            return view_of(name, ports, self._plain[name], trace)

        return find


def view_of(name: str, ports: Sequence[Items], items: Items, trace: Trace) -> NodeView:
    """Return some items of a node, and the one of any of its ports that an item with such a trace came from."""
    place = trace.get(name)
    if place is not None:
        return NodeView(name, items, plain(ports[place[0]][place[1]]))
    if sum(len(one) for one in ports) == 1 and len(items) == 1:
        return NodeView(name, items, items[0])
    several = name in trace
    why = "came from several items" if several else "came from no item"
    return NodeView(name, items, None, f"the item {why} of node {name!r}; use .first(), .last() or .all()")


def flat(sources: Sequence[Items | None]) -> Items:
    """Return the items of several connections as one list; a node that was passed over gave none."""
    return [item for items in sources for item in items or ()]


def with_traces(given: Given, ports: Sequence[Items]) -> list[Items]:
    """Return the items that a node put out with their traces; see `TRACE`."""
    name, traced = given.node["name"], given.node.get("traced", False)
    return [
        [_traced(given, item, [name, port, index] if traced else None) for index, item in enumerate(items)]
        for port, items in enumerate(ports)
    ]


def _traced(given: Given, item: Item, own: list[Any] | None) -> Item:
    trace: dict[str, Any] = {}
    for parent in _parents(given.traces, item.get("pairedItem")):
        for name, place in parent.items():
            trace[name] = place if trace.get(name, place) == place else None
    if own is not None:
        trace[own[0]] = own[1:]
    return item | {TRACE: trace} if trace else item


def parent_of(given: Given, item: Item) -> Item:
    """Return the item that another came from, paired with it; an empty one where none is known."""
    paired = item.get("pairedItem")
    parent: Item = next(iter(_parents(given.inputs, paired)), {"json": {}})
    return parent if paired is None else parent | {"pairedItem": paired}


def _parents(inputs: Sequence[Sequence[T]], paired: Any) -> list[T]:
    """Return what inputs have where a pairing says: at an index, {"item", "input"?}, or a list of these."""
    found = []
    for one in paired if isinstance(paired, list) else [paired]:
        place = one if isinstance(one, dict) else {"item": one}
        index, port = place.get("item"), place.get("input", 0)
        if isinstance(index, int) and isinstance(port, int) and port < len(inputs) and index < len(inputs[port]):
            found.append(inputs[port][index])
    return found


def plain(item: Item) -> Item:
    """Return an item as people know it, without its trace."""
    return {key: value for key, value in item.items() if key != TRACE} if TRACE in item else item


def plain_items(items: Items) -> Items:
    """Return items without their traces."""
    return [plain(item) for item in items]
