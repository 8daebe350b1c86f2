"""Reading the JSON form of graphs: one object at a time, each value with the path by which errors name it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.priority import parse_priority

T = TypeVar("T")
W = TypeVar("W", bound=StrEnum)
#: Reads a value; the text is the path by which errors name it.
Read = Callable[[Any, str], T]


class Members:
    """An object of the form. What is asked for is known; `close` refuses the rest."""

    def __init__(self, data: Any, field: str) -> None:
        if not isinstance(data, dict):
            raise InvalidInputError(field, "must be an object", data)
        self._data, self.field = data, field
        self._known: dict[str, None] = {}

    def at(self, name: str) -> str:
        """Return the path of a member."""
        return f"{self.field}.{name}"

    def has(self, name: str) -> bool:
        """Whether a member was written, be it as null."""
        self._known[name] = None
        return name in self._data

    def raw(self, name: str) -> Any:
        """Return a member as it was written, None without it."""
        self._known[name] = None
        return self._data.get(name)

    def get(self, name: str, read: Read[T], default: T) -> T:
        """Return a member, or `default` when it is missing or null."""
        value = self.raw(name)
        return default if value is None else read(value, self.at(name))

    def need(self, name: str, read: Read[T], why: str = "must be given") -> T:
        """Return a member. Raises InvalidInputError when it is missing or null."""
        value = self.raw(name)
        if value is None:
            raise InvalidInputError(self.at(name), why, None)
        return read(value, self.at(name))

    def close(self) -> None:
        """Raise InvalidInputError when something was written that nobody asked for."""
        for name, value in self._data.items():
            if name not in self._known:
                rule = f"is not known here; what may stand here is {', '.join(self._known)}"
                raise InvalidInputError(self.at(name[:80]), rule, value)


def text(value: Any, field: str) -> str:
    """Return a text."""
    if isinstance(value, str):
        return value
    raise InvalidInputError(field, "must be a text", value)


def whole(value: Any, field: str) -> int:
    """Return a whole number, of any size."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise InvalidInputError(field, "must be a whole number", value)


def truth(value: Any, field: str) -> bool:
    """Return true or false."""
    if isinstance(value, bool):
        return value
    raise InvalidInputError(field, "must be true or false", value)


def duration(value: Any, field: str) -> timedelta:
    """Return a duration, of seconds or of a text such as "90s"."""
    return parse_duration(value, field=field)


def priority(value: Any, field: str) -> int:
    """Return the number of a priority class."""
    try:
        return parse_priority(value)
    except InvalidInputError as error:
        raise InvalidInputError(field, error.rule, value) from None


def list_of(read: Read[T]) -> Read[tuple[T, ...]]:
    """Return what reads an array of values."""

    def read_all(value: Any, field: str) -> tuple[T, ...]:
        if not isinstance(value, list):
            raise InvalidInputError(field, "must be an array", value)
        return tuple(read(one, f"{field}[{index}]") for index, one in enumerate(value))

    return read_all


def word_of(kind: type[W]) -> Read[W]:
    """Return what reads one of some words."""

    def read(value: Any, field: str) -> W:
        if isinstance(value, str) and value in tuple(kind):
            return kind(value)
        raise InvalidInputError(field, f"must be one of {', '.join(kind)}", value)

    return read


def seconds(value: timedelta) -> int | float:
    """Return a duration as a number that `duration` reads back exactly.

    >>> seconds(timedelta(minutes=1)), seconds(timedelta(milliseconds=250))
    (60, 0.25)
    """
    total = value.total_seconds()
    return int(total) if total.is_integer() else total
