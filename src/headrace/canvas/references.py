"""References: values of a run that are not known yet. They may stand anywhere in arguments."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any, Never

from headrace.model.errors import InvalidInputError
from headrace.model.graph.bindings import MARKERS


class Source(StrEnum):
    """Where the value of a reference comes from."""

    #: what a part of the workflow gave
    OUTPUT = "output"
    #: what the graph was given that the reference stands in
    INPUT = "input"
    #: an argument of the workflow's function
    PARAMETER = "parameter"
    #: what is known of the run
    RUN = "run"
    #: which entry of a map, or round of a loop, it is
    INDEX = "index"


class NoAttributeError(InvalidInputError, AttributeError):
    """An attribute of a reference was read. `hasattr` and `getattr` with a default see that there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Reference:
    """A value that only the run knows: `[…]` goes into it, and it may stand anywhere in arguments.

    Code cannot decide by it, for the code runs once, before any run: use `choose`, `loop` and `map_`.

    >>> input_["pages"][0]
    input_['pages'][0]
    """

    source: Source
    #: The part, the name of a node, or that of a parameter.
    of: Any = None
    path: tuple[str | int, ...] = ()

    def __getitem__(self, key: str | int) -> Reference:
        """Return the reference to what lies under a name or at a position."""
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise InvalidInputError("reference", 'goes on with a name or a position, as in ["pages"][0]', key)
        if self.source is Source.INDEX:
            raise InvalidInputError("index_", "is a number: nothing lies within it", key)
        return replace(self, path=(*self.path, key))

    def __repr__(self) -> str:
        shown = {Source.OUTPUT: f"ref({self.of!r})", Source.PARAMETER: str(self.of)}
        return shown.get(self.source, f"{self.source}_") + "".join(f"[{key!r}]" for key in self.path)

    def __bool__(self) -> Never:
        raise self._undecided("an `if`", "use choose(when(…)…)")

    def __eq__(self, other: object) -> Never:
        raise self._undecided("a comparison", "use when(…).eq(…)")

    def __lt__(self, other: object) -> Never:
        raise self._undecided("a comparison", "use when(…).lt(…), .le(…), .gt(…) or .ge(…)")

    __le__ = __gt__ = __ge__ = __lt__

    __hash__ = object.__hash__

    def __iter__(self) -> Never:
        raise self._undecided("a `for`", "use map_(…, over=…)")

    def __contains__(self, one: object) -> Never:
        raise self._undecided("an `in`", "use when(…).contains(…)")

    def __len__(self) -> Never:
        raise self._undecided("len()", "give it to a task that counts")

    def __format__(self, spec: str) -> Never:
        raise self._undecided("a text", "give it to a task that makes the text")

    def __str__(self) -> Never:
        raise self._undecided("a text", "give it to a task that makes the text")

    def _calculated(self, other: object) -> Never:
        raise self._undecided("a calculation", "give it to a task that calculates")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __mod__ = __rmod__ = _calculated
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __pow__ = __rpow__ = _calculated

    def __getattr__(self, name: str) -> Never:
        if name.startswith("_"):  # what Python and its tools look for
            raise AttributeError(name)
        rule = f"is known only in a run and has no attributes: what lies within it is {self!r}[{name!r}]"
        raise NoAttributeError(repr(self), rule, f".{name}")

    def _undecided(self, what: str, instead: str) -> InvalidInputError:
        return InvalidInputError(repr(self), f"is known only in a run and cannot stand in {what}: {instead}", "it")


#: What the graph was given: of a workflow its input, in the body of a map the entry, of a loop the round's input.
input_ = Reference(Source.INPUT)
#: What is known of the run: id, workflow, user_id, correlation_id, metadata, input.
run_ = Reference(Source.RUN)
#: Which entry of a map, or round of a loop, it is, from 0.
index_ = Reference(Source.INDEX)


@dataclass(frozen=True, slots=True, eq=False)
class Made:
    """A value that a template makes of others: "$first" of them that is not null, or their "$text" in one."""

    marker: str
    parts: tuple[Any, ...]


def fill(value: Any, known: Callable[[Reference], Any], field: str) -> Any:
    """Return JSON data in which each reference is replaced by `known` of it.

    Raises InvalidInputError for what is no JSON data. `field` names where it stands.
    """
    if isinstance(value, Reference):
        return known(value)
    if isinstance(value, Made):
        return {value.marker: [fill(part, known, field) for part in value.parts]}
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [fill(one, known, field) for one in value]
    if isinstance(value, dict):
        made = {_key(name, field): fill(one, known, field) for name, one in value.items()}
        return {"$literal": _quoted(value, field)} if value.keys() & MARKERS else made
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return fill(dump(mode="json"), known, field)
    rule = "must be JSON data with references in it: text, numbers, lists, mappings, pydantic models"
    raise InvalidInputError(field, rule, value)


def _quoted(value: dict[str, Any], field: str) -> Any:
    """Return data that looks like a template, which must have no references in it."""
    for reference in references(value):
        rule = f"must not have a reference within an object with the key {min(value.keys() & MARKERS)}"
        raise InvalidInputError(field, rule, reference)
    return value


def _key(name: Any, field: str) -> str:
    if isinstance(name, str):
        return name
    raise InvalidInputError(field, "must have mappings with text as keys", name)


def references(value: Any) -> Iterator[Reference]:
    """Yield the references that stand in a value."""
    if isinstance(value, Reference):
        yield value
        return
    within = value.parts if isinstance(value, Made) else value.values() if isinstance(value, dict) else value
    if isinstance(value, Made | dict | list | tuple):
        for one in within:
            yield from references(one)
