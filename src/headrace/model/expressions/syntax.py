"""The tree of an expression. Nodes are made by the parser, kept between evaluations and never changed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from headrace.model.expressions.functions.listing import Function


@dataclass(slots=True, eq=False)
class Part:
    """Any node: where it stands in the text, and how deep the tree below it is."""

    start: int
    end: int
    height: int


@dataclass(slots=True, eq=False)
class Literal(Part):
    """A text, number, truth value or null that is written out."""

    value: str | float | bool | None


@dataclass(slots=True, eq=False)
class Root(Part):
    """A value that the scope has: `$json`, `$now`."""

    name: str


@dataclass(slots=True, eq=False)
class OtherNode(Part):
    """Another node of the flow: `$('X')`, `$node["X"]`."""

    name: str
    #: Whether its `json` and `binary` are those of the item of the same number: `$node["X"]`.
    numbered: bool = False


@dataclass(slots=True, eq=False)
class Member(Part):
    """A member by its name: `a.b`, `a?.b`."""

    inner: Part
    name: str
    optional: bool


@dataclass(slots=True, eq=False)
class Index(Part):
    """A member or element by a computed name or number: `a["b"]`, `a[0]`, `a?.[0]`."""

    inner: Part
    key: Part
    optional: bool


@dataclass(slots=True, eq=False)
class Call(Part):
    """A function by its name: `parseInt(a)`, `Math.round(a)`."""

    function: Function
    arguments: list[Part]


@dataclass(slots=True, eq=False)
class Method(Part):
    """A function with its first argument in front of it: `a.trim()`; without a function it is one of nodes' items."""

    inner: Part
    name: str
    function: Function | None
    arguments: list[Part]
    optional: bool


@dataclass(slots=True, eq=False)
class Chain(Part):
    """Where `?.` stops: the whole chain is null when what is before one of its `?.` is."""

    inner: Part


@dataclass(slots=True, eq=False)
class Unary(Part):
    """An operator with one operand: `!a`, `-a`, `typeof a`."""

    operator: str
    operand: Part


@dataclass(slots=True, eq=False)
class Binary(Part):
    """An operator with two operands that are both evaluated: `a + b`."""

    operator: str
    left: Part
    right: Part


@dataclass(slots=True, eq=False)
class Logic(Part):
    """An operator that may do without its second operand: `a && b`, `a || b`, `a ?? b`."""

    operator: str
    left: Part
    right: Part


@dataclass(slots=True, eq=False)
class Choice(Part):
    """`test ? yes : no`."""

    test: Part
    yes: Part
    no: Part


@dataclass(slots=True, eq=False)
class Elements(Part):
    """A list that is written out."""

    elements: list[Part]


@dataclass(slots=True, eq=False)
class Members(Part):
    """An object that is written out."""

    members: list[tuple[str, Part]]


@dataclass(slots=True, eq=False)
class Pieces(Part):
    """A text with values in it: a template literal."""

    pieces: list[Part]


def children(part: Part) -> list[Part]:
    """Return the nodes directly below a node."""
    found: list[Part] = []
    for one in fields(part):
        value: Any = getattr(part, one.name)
        listed = value if isinstance(value, list) else [value]
        plain = [element[1] if isinstance(element, tuple) else element for element in listed]
        found += [element for element in plain if isinstance(element, Part)]
    return found
