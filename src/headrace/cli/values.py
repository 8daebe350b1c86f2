"""Types of options: a wrong value is refused with the rule it breaks."""

from __future__ import annotations

import json
import re
import sys
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import click

from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.ids import parse_id
from headrace.model.names import check_name
from headrace.model.priority import parse_priority
from headrace.model.strict_json import json_fault, refuse_constant, unique_members

_NEGATIVE = re.compile(r"-[0-9.]")
#: No more digits than any number that is meant: int() of a million takes a while.
_WHOLE = re.compile(r"[+-]?[0-9]{1,19}")


class _CheckedType(click.ParamType):  # type: ignore[type-arg] # generic in newer versions only
    """A type whose rule is checked by the model; its refusal becomes a usage error."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the parsed value of a text; other values are parsed already."""
        if not isinstance(value, str):
            return value
        try:
            return self.parse(value)
        except InvalidInputError as error:
            self.fail(f"{error.rule}, got {value!r}", param, ctx)

    def parse(self, text: str) -> Any:
        """Return the value of `text`. Raises InvalidInputError."""
        raise NotImplementedError


class DurationType(_CheckedType):
    """`90s`, `2m`, `1h30m`, `7d`."""

    name = "duration"

    def parse(self, text: str) -> timedelta:
        """Return the duration."""
        if text.startswith("-"):
            raise InvalidInputError("duration", 'must not be negative: write a duration such as "90s" or "2m"', text)
        return parse_duration(text)


class WholeType(click.IntRange):
    """A whole number within bounds, which the help shows.

    >>> WholeType("cap", 0, 100).convert("7", None, None)
    7
    """

    def __init__(self, what: str, least: int, most: int | None = None) -> None:
        super().__init__(least, most)
        self._rule = f"{what} must be a whole number " + (
            f"of at least {least}" if most is None else f"from {least:,} to {most:,}"
        )

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number of a text; other values are numbers already."""
        if not isinstance(value, str):
            return value
        if not _WHOLE.fullmatch(value) or self._outside(int(value)):
            self.fail(f"{self._rule}, got {value!r}", param, ctx)
        return int(value)

    def _outside(self, number: int) -> bool:
        return (self.min is not None and number < self.min) or (self.max is not None and number > self.max)


class NumberType(_CheckedType):
    """A number; its bounds are checked where it is used."""

    name = "number"

    def __init__(self, what: str) -> None:
        self._what = what

    def parse(self, text: str) -> float:
        """Return the number."""
        try:
            return float(text)
        except ValueError:
            raise InvalidInputError(self._what, f"{self._what} must be a number such as 2 or 0.5", text) from None


class CommandOfNumbers(click.Command):
    """A command that takes `-1` for a wrong number, not for an option that it does not have."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the words of a command line."""
        ctx.ignore_unknown_options = any(_NEGATIVE.match(word) for word in args)
        return super().parse_args(ctx, args)


class NameType(_CheckedType):
    """The name of a queue."""

    name = "name"

    def parse(self, text: str) -> str:
        """Return the name."""
        return check_name("name", text)


class QueueType(_CheckedType):
    """`NAME` or `NAME:N`."""

    name = "queue"

    def parse(self, text: str) -> tuple[str, int | None]:
        """Return name and concurrency."""
        name, colon, count = text.partition(":")
        check_name("queue", name)
        if not colon:
            return name, None
        if not (count.isascii() and count.isdigit() and int(count) >= 1):
            raise InvalidInputError("concurrency", "must be NAME or NAME:N with a whole number N of at least 1", text)
        return name, int(count)


class IdType(_CheckedType):
    """The id of a job, a batch or a run."""

    name = "id"

    def parse(self, text: str) -> UUID:
        """Return the id."""
        return parse_id("id", text)


class PriorityType(_CheckedType):
    """A class by name, or 0 to 9."""

    name = "priority"

    def parse(self, text: str) -> int:
        """Return the number."""
        return parse_priority(int(text) if text.isascii() and text.isdigit() else text)


class InstantType(_CheckedType):
    """A delay such as `10m`, or an instant with its offset such as `2031-01-31T12:00:00Z`."""

    name = "instant"

    def parse(self, text: str) -> datetime | timedelta:
        """Return the instant, or the delay."""
        try:
            return parse_duration(text)
        except InvalidInputError:
            pass
        try:
            instant = datetime.fromisoformat(text)
        except ValueError:
            rule = "must be a delay such as 10m, or an instant such as 2031-01-31T12:00:00Z"
            raise InvalidInputError("instant", rule, text) from None
        if instant.tzinfo is None:
            raise InvalidInputError("instant", "must say its offset from UTC: write Z or +01:00 at its end", text)
        return instant


def parse_json(text: str) -> Any:
    """Return the value of JSON without duplicate keys, NaN and infinities. Raises InvalidInputError.

    >>> parse_json('{"page": [7]}')
    {'page': [7]}
    """
    try:
        return json.loads(text, object_pairs_hook=unique_members, parse_constant=refuse_constant)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno} column {error.colno}"
        raise InvalidInputError("json", f"must be JSON ({error.msg} at {where})", text) from None
    except ValueError as error:
        raise InvalidInputError("json", f"must be JSON ({json_fault(error)})", text) from None
    except RecursionError:
        raise InvalidInputError("json", "must not be nested that deep", text) from None


class JsonType(_CheckedType):
    """JSON without duplicate keys, NaN and infinities; `-` reads it from standard input."""

    name = "json"

    def parse(self, text: str) -> Any:
        """Return the value."""
        if text == "-":
            try:
                text = sys.stdin.read()
            except UnicodeDecodeError as error:
                raise InvalidInputError("json", f"must be JSON in UTF-8 ({error})", "-") from None
        return parse_json(text)
