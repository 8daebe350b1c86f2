"""Reading what others wrote: each reader returns a value that every store takes, or raises EnvelopeError."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from headrace.model.errors import InvalidInputError
from headrace.model.payload import encode_json
from headrace.model.strict_json import finite_number, json_fault, refuse_constant, unique_members

#: Ids and names of others may have so many characters.
MOST_TEXT = 255
#: The most that `[events] max_bytes` may say; brokers refuse far less.
MOST_BYTES = 100_000_000

_MOMENT = re.compile(r"[0-9]{4}(-[0-9]{2}){2}[Tt ][0-9]{2}(:[0-9]{2}){2}(\.[0-9]+)?([Zz]|[+-][0-9]{2}:[0-9]{2})")
_UNFIT = re.compile(r"[^A-Za-z0-9_]")


class EnvelopeError(InvalidInputError):
    """A message is no event in a form that is read. Correct the named field where it is produced, and send it again."""

    code = "bad_envelope"


def read_json(data: bytes, field: str = "message value") -> Any:
    """Return the value of JSON in UTF-8.

    Not taken: keys that stand twice, NaN and numbers too large to be one, and nesting that no parser follows.

    >>> read_json(b'{"a": [1]}')
    {'a': [1]}
    """
    try:
        return json.loads(
            data.decode(), object_pairs_hook=unique_members, parse_constant=refuse_constant, parse_float=finite_number
        )  # fmt: skip
    except UnicodeDecodeError:
        raise EnvelopeError(field, "must be UTF-8", data[:40]) from None
    except RecursionError:
        raise EnvelopeError(field, "must not be nested so deeply", data[:40]) from None
    except ValueError as error:
        raise EnvelopeError(field, f"must be JSON ({json_fault(error)})", data[:40]) from None


def storable(payload: Any, field: str = "payload") -> Any:
    """Return a payload that every store takes: without NUL characters and lone surrogates, at most 64 levels deep."""
    try:
        encode_json(payload, field=field, most=MOST_BYTES)
    except InvalidInputError as error:
        raise EnvelopeError(field, error.rule, error.value) from None
    return payload


def text_of(body: Mapping[str, Any], name: str) -> str:
    """Return a text that must be there: 1 to 255 characters of any kind that every store takes."""
    value = body.get(name)
    if not isinstance(value, str) or not 1 <= len(value) <= MOST_TEXT or not _is_storable(value):
        rule = f"must be a text of 1 to {MOST_TEXT} characters without NUL and lone surrogates"
        raise EnvelopeError(name, rule, value)
    return value


def _is_storable(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def optional_text(body: Mapping[str, Any], name: str) -> str | None:
    """Return a text, or None where there is none or an empty one."""
    return None if body.get(name) in (None, "") else text_of(body, name)


def whole_of(body: Mapping[str, Any], name: str, *, least: int) -> int:
    """Return a whole number from `least`, which is also what it is where it is missing; digits in a text count."""
    value = body.get(name)
    if value is None:
        return least
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 10:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 2**31:
        raise EnvelopeError(name, f"must be a whole number from {least}", value)
    return value


def moment_of(body: Mapping[str, Any], name: str) -> datetime | None:
    """Return a time as of RFC 3339, or None where there is none.

    >>> moment_of({"time": "2026-05-01T12:00:00Z"}, "time")
    datetime.datetime(2026, 5, 1, 12, 0, tzinfo=datetime.timezone.utc)
    """
    value = body.get(name)
    if value is None:
        return None
    try:
        if not isinstance(value, str) or not _MOMENT.fullmatch(value):
            raise ValueError
        return datetime.fromisoformat(value.upper())
    except ValueError:
        raise EnvelopeError(name, "must be a time such as 2026-05-01T12:00:00Z (RFC 3339)", value) from None


def moment_text(moment: datetime | None) -> str | None:
    """Return a time as it is written, in UTC."""
    if moment is None:
        return None
    if moment.tzinfo is None:
        raise InvalidInputError("time", "must have a time zone", moment)
    try:
        return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")
    except OverflowError:
        raise InvalidInputError("time", "must lie in the years 1 to 9999 in UTC", moment) from None


def fit_name(name: str) -> str:
    """Return a name as a part of an event's type may be: letters, digits and _, at most 64, a letter first.

    >>> fit_name("order-lines"), fit_name("7up")
    ('order_lines', 'X7up')
    """
    fit = _UNFIT.sub("_", name)
    return (fit if fit[:1].isalpha() else f"X{fit}")[:64]
