"""What a node type is, and what one call of a node is given.

Items are plain JSON objects, as the format has them: `{"json": {…}, "binary"?: {…}, "pairedItem"?: …, "error"?: …}`.
A type says how it works on them by its `shape`: most take all items of their inputs in one call (`whole`); those that
are slow, cost money or fail one by one take each item by itself (`each`), and are retried and kept so.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, tzinfo
from enum import StrEnum
from typing import Any, Protocol

from headrace.model.errors import HeadraceError, InvalidInputError
from headrace.model.expressions.scope import Scope
from headrace.nodes.parameters import Parameters
from headrace.nodes.services import Services

Item = dict[str, Any]
#: The items of one port.
Items = list[Item]


class NodeError(HeadraceError):
    """The node cannot do what its parameters ask for."""

    code = "node_error"

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.details = dict(details or {})


class Shape(StrEnum):
    """How a type works on its items."""

    #: one call for all items of all inputs
    WHOLE = "whole"
    #: one call for each item of its input, each with tries, a stored result and an end of its own
    EACH = "each"
    #: it begins a run: it is given the input of the run
    TRIGGER = "trigger"
    #: it is given back what its first loop port led to, and ends when its items are used up
    LOOP = "loop"
    #: it runs another flow
    FLOW = "flow"
    #: it is a note for people, and never runs
    NOTE = "note"


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a node cannot run: the parameter's path, and a rule that says what to do instead."""

    parameter: str
    message: str


@dataclass(frozen=True, slots=True)
class Ports:
    """How many inputs a node has, and the names of its outputs, the port of errors not among them."""

    inputs: int = 1
    outputs: tuple[str, ...] = ("main",)


@dataclass(slots=True)
class Call:
    """One call of a `whole` or `trigger` node."""

    name: str
    version: float
    #: As they were written, expressions not evaluated.
    parameters: Mapping[str, Any]
    #: Items by input port; a port that nothing leads to has none.
    inputs: Sequence[Items]
    #: Returns what expressions see at an item of an input port.
    scope_of: Callable[[int, int], Scope]
    services: Services
    #: What became of items that failed while others went on: (item, error); filled by `each`.
    failed: list[tuple[Item, HeadraceError]] = field(default_factory=list)
    #: Whether an item that fails ends the call: the node has another try, or its policy is to stop.
    strict: bool = True
    #: What the run was started with, of a trigger.
    given: Items = field(default_factory=list)
    #: The zone of the flow's clocks.
    zone: tzinfo = UTC

    @classmethod
    def trial(cls, parameters: Mapping[str, Any], *inputs: Items, services: Any = None) -> Call:
        """Return a call by itself, to try a type without a flow; expressions see the items alone."""

        def scope_of(index: int, port: int) -> Scope:
            items = inputs[port] if port < len(inputs) else []
            return Scope(items[index] if index < len(items) else None, index, items)

        return cls("Trial", 1, parameters, inputs, scope_of, services)

    @property
    def items(self) -> Items:
        """The items of the first input."""
        return self.inputs[0] if self.inputs else []

    def at(self, index: int = 0, port: int = 0) -> Parameters:
        """Return the parameters as they are at an item: expressions are evaluated as they are asked for."""
        return Parameters(self.parameters, self.scope_of(index, port))

    def each(self, make: Callable[[Item, Parameters], Item | Iterable[Item] | None]) -> Items:
        """Call `make` for each item of the first input; return what it gave, paired with the item it came from.

        An item that fails ends the call (`strict`), or is kept in `failed`, and the others go on.
        """
        out: Items = []
        for index, item in enumerate(self.items):
            try:
                made = make(item, self.at(index))
                found = [] if made is None else [made] if isinstance(made, dict) else list(made)
            except (NodeError, InvalidInputError) as error:
                if self.strict:
                    raise
                self.failed.append(({**item, "pairedItem": {"item": index}}, error))
                continue
            out += [{**one, "pairedItem": {"item": index}} for one in found]
        return out


@dataclass(frozen=True, slots=True)
class OneCall:
    """One call of an `each` node for one item, its expressions evaluated already."""

    name: str
    version: float
    parameters: Parameters
    item: Item
    services: Services


class NodeType(Protocol):
    """What every type has."""

    @property
    def name(self) -> str:
        """The word for it in lists: "splitOut"."""
        ...

    @property
    def types(self) -> tuple[str, ...]:
        """The values of `type` that mean it: "headrace.splitOut", "n8n-nodes-base.splitOut"."""
        ...

    @property
    def versions(self) -> tuple[float, float]:
        """The lowest and the highest `typeVersion` that it understands; with a higher one a flow cannot run."""
        ...

    @property
    def summary(self) -> str:
        """What it does, in one line."""
        ...

    @property
    def shape(self) -> Shape:
        """How it works on its items."""
        ...

    def fits(self, parameters: Mapping[str, Any]) -> bool:
        """Whether a node of one of its `types` with these parameters is meant: some types share a name elsewhere."""
        ...

    def ports(self, parameters: Mapping[str, Any], version: float) -> Ports:
        """Return its ports; they may depend on parameters, which are not evaluated yet. Wrong ones give the usual."""
        ...

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return what of its parameters it cannot do; none: it runs. Syntax of expressions is looked at elsewhere."""
        ...


class WholeType(NodeType, Protocol):
    """A type of the shape `whole` or `trigger`."""

    def run(self, call: Call) -> list[Items] | Awaitable[list[Items]]:
        """Return the items for each output port. Raises NodeError, ExpressionError.

        As with tasks, `def` runs in a thread, and is for what computes; `async def` runs on the event loop, and is for
        what asks `call.services`.
        """
        ...


class EachType(NodeType, Protocol):
    """A type of the shape `each`."""

    async def run_one(self, call: OneCall) -> list[Item]:
        """Return the items that one becomes. Raises NodeError, and what its services raise."""
        ...


@dataclass(frozen=True, slots=True)
class Named:
    """The facts of a type; types are subclasses with `run` or `run_one`."""

    name: str
    types: tuple[str, ...]
    versions: tuple[float, float]
    summary: str
    shape: Shape = Shape.WHOLE

    def fits(self, parameters: Mapping[str, Any]) -> bool:
        """Return True: whatever has its name is meant."""
        return True

    def ports(self, parameters: Mapping[str, Any], version: float) -> Ports:
        """Return one input and one output."""
        return Ports()

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return nothing: whatever its parameters are, they are looked at when it runs."""
        return []


def ours(name: str, *others: str) -> tuple[str, ...]:
    """Return the values of `type` of a type: ours, and those of the same name, or other ones, elsewhere.

    >>> ours("set", "n8n-nodes-base.set")
    ('headrace.set', 'n8n-nodes-base.set')
    """
    return (f"headrace.{name}", *others)
