"""How a function is listed: by its name, with what the reference says of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

#: Takes the run (for its budget, clock and zone), then the arguments.
Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Function:
    """One function: `name(a, b)`, and `a.name(b)` where the name is a plain word."""

    name: str
    call: Implementation
    #: How many arguments it takes, what stands in front of the dot among them; None: any number.
    least: int
    most: int | None
    description: str
    #: An expression, and what it gives.
    example: str
    result: Any
    #: The name that the reference lists it by, where this is another one.
    alias_of: str = ""

    @property
    def has_method(self) -> bool:
        """Whether it can stand behind a dot."""
        return self.name[0].islower() and "." not in self.name


class Table:
    """Functions by name, in the order they are written in."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.functions: dict[str, Function] = {}

    def listed(
        self, name: str, description: str, example: tuple[str, Any], also: tuple[str, ...] = ()
    ) -> Callable[[Implementation], Implementation]:
        """Return a decorator that lists a function by its name, and by others that mean the same."""

        def enter(call: Implementation) -> Implementation:
            least, most = _arity(call)
            function = Function(name, call, least, most, description, *example)
            self.functions[name] = function
            self.functions |= {other: replace(function, name=other, alias_of=name) for other in also}
            return call

        return enter


def _arity(call: Implementation) -> tuple[int, int | None]:
    found = list(inspect.signature(call).parameters.values())[1:]
    least = sum(one.default is one.empty and one.kind is not one.VAR_POSITIONAL for one in found)
    endless = any(one.kind is one.VAR_POSITIONAL for one in found)
    return least, None if endless else len(found)
