"""A request for details, checked field by field."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any
from urllib.parse import urlsplit

from headrace.apps.details.kinds import check_type
from headrace.apps.details.priorities import DEFAULT, HIGHEST, LOWEST
from headrace.model.errors import InvalidInputError
from headrace.model.ids import uuid7
from headrace.model.numbers import check_whole

MOST_ITEMS, MOST_FIRST, MOST_STYLE = 1_000, 25, 500
#: Of a session's id and of a scope: with the type they name a book of names.
MOST_ID = 128
FIRST_RESPONSE = 10

_MOST_URL = 2_048
#: Control characters; a style may have several lines.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


@dataclass(frozen=True, slots=True, kw_only=True)
class DetailsRequest:
    """What to write. Made by `parse_request`, which fills in what is left out."""

    type: str
    count: int
    #: How they are to be; it stands in the prompt.
    style: str
    #: 0 to 10, 10 the most urgent.
    priority: int
    session_id: str
    #: Where a name may be given once: by default the session.
    scope: str
    #: How many usable details are the first response.
    first_response: int
    #: Who is told of the end.
    webhook: str | None = None

    @property
    def first_count(self) -> int:
        """How many details the first response of this request has."""
        return min(self.count, self.first_response)

    def to_json(self) -> dict[str, Any]:
        """The request as `parse_request` reads it."""
        return asdict(self)


def parse_request(data: object, *, first_response: int = FIRST_RESPONSE) -> DetailsRequest:
    """Return the request in this JSON object. Raises InvalidInputError naming field, rule and value.

    `first_response`: of a request that says nothing of it.

    >>> request = parse_request({"type": "skill", "count": 12, "session_id": "s-1"})
    >>> request.priority, request.first_response, request.scope, request.style
    (5, 10, 's-1', '')
    """
    if not isinstance(data, Mapping):
        raise InvalidInputError("details request", f"must be an object of {', '.join(_FIELDS)}", data)
    if unknown := sorted(str(name) for name in data.keys() - _FIELDS.keys()):
        raise InvalidInputError("details request", f"takes only {', '.join(_FIELDS)}", unknown[0])
    for name in ("type", "count"):
        if data.get(name) is None:
            raise InvalidInputError(name, "must be given")
    given = {name: check(name, data[name]) for name, check in _FIELDS.items() if data.get(name) is not None}
    session = given.get("session_id") or str(uuid7())
    left_out = {"style": "", "priority": DEFAULT, "first_response": first_response, "scope": session}
    return DetailsRequest(**{**left_out, **given, "session_id": session})


def _type(name: str, value: object) -> str:
    return check_type(value)


def _whole(least: int, most: int) -> Callable[[str, object], int]:
    return lambda name, value: check_whole(name, value, least, most)


def _style(name: str, value: object) -> str:
    if not isinstance(value, str) or len(value) > MOST_STYLE or _CONTROL.search(value):
        raise InvalidInputError(
            name, f"must be a text of at most {MOST_STYLE} characters, none of them a control", value
        )
    return value.strip()


def _id(name: str, value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MOST_ID or not value.isprintable():
        raise InvalidInputError(name, f"must be 1 to {MOST_ID} printable characters", value)
    return value


def _webhook(name: str, value: object) -> str:
    if not isinstance(value, str) or not _is_url(value):
        raise InvalidInputError(name, f"must be an http or https URL of at most {_MOST_URL:,} characters", value)
    return value


def _is_url(text: str) -> bool:
    if len(text) > _MOST_URL or not text.isprintable() or " " in text:
        return False
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname)


#: Each field and its rule, in the order in which they are told.
_FIELDS: Mapping[str, Callable[[str, object], Any]] = {
    "type": _type,
    "count": _whole(1, MOST_ITEMS),
    "style": _style,
    "priority": _whole(LOWEST, HIGHEST),
    "session_id": _id,
    "scope": _id,
    "first_response": _whole(1, MOST_FIRST),
    "webhook": _webhook,
}
