"""What `$input` and `$('X')` are: names for items, with members of their own; never data by themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.model.expressions.budget import Run
from headrace.model.expressions.clock import current, midnight
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.scope import Item, NodeView
from headrace.model.expressions.values import to_whole

#: The words behind the dot that take brackets, and how many arguments they may have.
METHODS = {"all": 0, "first": 0, "last": 0, "itemMatching": 1, "pairedItem": 1}


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts under fixed names: `$execution.id`. A name that it does not have is an error, not null."""

    name: str
    members: Mapping[str, Any]

    def member(self, run: Run, name: str) -> Any:
        """Return one of them."""
        if name not in self.members:
            raise Fault(f"{self.name} has no `{name}`; it has {', '.join(sorted(self.members)) or 'nothing here'}")
        return self.members[name]


@dataclass(frozen=True, slots=True)
class InputView:
    """`$input`: the items of the node's input."""

    name = "$input"

    def member(self, run: Run, name: str) -> Any:
        """Return the current item."""
        if name == "item":
            return plain(run, current_item(run))
        raise Fault(f"$input has no `{name}`; it has item, first(), last() and all()")

    def method(self, run: Run, name: str, arguments: list[Any]) -> Any:
        """Return some of its items."""
        return _some(run, run.scope.items, name)


@dataclass(frozen=True, slots=True)
class OtherItems:
    """`$('X')`, and `$node["X"]`: the items of another node."""

    node: str
    #: Whether `json` and `binary` are those of the item with the number of the current one: `$node["X"]`.
    numbered: bool = False

    @property
    def name(self) -> str:
        """How it is written."""
        return f'$node["{self.node}"]' if self.numbered else f"$('{self.node}')"

    def member(self, run: Run, name: str) -> Any:
        """Return its item that the current one came from, or a part of that, or whether it ran at all."""
        if name == "isExecuted":
            return self._ran(run)
        if name == "item":
            return plain(run, self._item(run))
        if name == "json":
            return plain(run, self._meant(run).get("json", {}))
        if name == "binary":
            return plain(run, self._meant(run).get("binary", {}))
        raise Fault(f"{self.name} has no `{name}`; it has item, json, binary, isExecuted, first(), last() and all()")

    def method(self, run: Run, name: str, arguments: list[Any]) -> Any:
        """Return some of its items."""
        if name == "pairedItem":
            return plain(run, self._item(run))
        items = self._view(run).items
        if name == "itemMatching":
            index = to_whole(arguments[0]) if arguments else run.scope.index
            return plain(run, items[index]) if 0 <= index < len(items) else None
        return _some(run, items, name)

    def _view(self, run: Run) -> NodeView:
        try:
            return run.scope.node(self.node)
        except LookupError as error:
            why = error.args[0] if error.args else ""
            hint = "" if why == self.node else f": {why}"
            raise Fault(f"there are no items of the node {self.node!r}{hint}") from None

    def _item(self, run: Run) -> Item:
        view = self._view(run)
        if view.item is None:
            why = view.why or "it is not known which of its items the current one came from"
            raise Fault(f"{why}: use {self.name}.first(), .last() or .all()")
        return view.item

    def _meant(self, run: Run) -> Item:
        return self._at_number(run) if self.numbered else self._item(run)

    def _at_number(self, run: Run) -> Item:
        """Return the item with the number of the current one; the only one there is stands for all."""
        items, index = self._view(run).items, run.scope.index
        if len(items) == 1:
            return items[0]
        if index >= len(items):
            rule = f"has {len(items)} items, and this is item {index}, counted from 0"
            raise Fault(f"the node {self.node!r} {rule}: use $('{self.node}').item for the one that it came from")
        return items[index]

    def _ran(self, run: Run) -> bool:
        try:
            run.scope.node(self.node)
        except LookupError:
            return False
        return True


def current_item(run: Run) -> Item:
    """Return the current item. Raises Fault where there is none."""
    if run.scope.item is None:
        raise Fault("there is no current item here: the node has no input items")
    return run.scope.item


def plain(run: Run, value: Any) -> Any:
    """Return a mapping or sequence of the scope as a plain object or list: itself, if it is one."""
    if isinstance(value, Mapping) and type(value) is not dict:
        run.charge(64 + 104 * len(value))
        return dict(value)
    if isinstance(value, Sequence) and not isinstance(value, str | list):
        run.charge(56 + 8 * len(value))
        return list(value)
    return value


def _some(run: Run, items: Sequence[Item], name: str) -> Any:
    if name == "all":
        return plain(run, items)
    if name in ("first", "last"):
        return plain(run, items[0 if name == "first" else -1]) if items else None
    raise Fault("is not for $input, which has first(), last() and all()")


#: What stands for itself: the words that begin with $.
ROOTS: dict[str, Callable[[Run], Any]] = {
    "$json": lambda run: plain(run, current_item(run).get("json", {})),
    "$binary": lambda run: plain(run, current_item(run).get("binary", {})),
    "$input": lambda run: InputView(),
    "$now": current,
    "$today": midnight,
    "$vars": lambda run: plain(run, run.scope.variables),
    "$itemIndex": lambda run: run.scope.index,
    "$position": lambda run: run.scope.index,
    "$runIndex": lambda run: run.scope.round,
    "$execution": lambda run: Facts("$execution", run.scope.execution),
    "$workflow": lambda run: Facts("$workflow", run.scope.workflow),
    "$prevNode": lambda run: Facts("$prevNode", run.scope.previous),
}
