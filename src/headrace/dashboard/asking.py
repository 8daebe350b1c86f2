"""What stands in the address of a page: choices, names, places in lists. Wrong ones are told, as the API does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, TypeVar
from uuid import UUID

from headrace.dashboard.page import View
from headrace.model.errors import InvalidInputError
from headrace.model.ids import parse_id
from headrace.model.job import Made
from headrace.model.names import check_name
from headrace.model.places import decode_place, encode_place

E = TypeVar("E", bound=StrEnum)
#: Rows of a list.
ROWS = 50


class Placed(Protocol):
    """A row of a list that is newest first."""

    @property
    def id(self) -> UUID: ...

    @property
    def created_at(self) -> datetime: ...


T = TypeVar("T", bound=Placed)


@dataclass(frozen=True, slots=True)
class Rows:
    """A part of a list, and the addresses of its neighbours' places."""

    rows: Sequence[Any]
    #: where the next part begins; None: there is none
    next: str | None
    #: whether it is not the first one
    later: bool


def choice(view: View, name: str, kind: type[E]) -> E | None:
    """Return a choice of the address, None where there is none. Raises InvalidInputError."""
    text = view.query.get(name, "")
    if not text:
        return None
    try:
        return kind(text)
    except ValueError:
        raise InvalidInputError(name, f"must be one of {', '.join(kind)}", text) from None


def named(view: View, name: str) -> str | None:
    """Return a name of the address, None where there is none. Raises InvalidInputError."""
    text = view.query.get(name, "").strip()
    return check_name(name, text) if text else None


def id_of(view: View, name: str) -> UUID | None:
    """Return an id of the address, None where there is none. Raises InvalidInputError."""
    text = view.query.get(name, "").strip()
    return parse_id(name, text) if text else None


def place(view: View) -> Made | None:
    """Return where a list begins; None: at its newest. Raises InvalidInputError."""
    text = view.query.get("cursor", "")
    return decode_place(text) if text else None


def rows_of(view: View, found: Sequence[T], most: int = ROWS) -> Rows:
    """Return the rows of a page of which one more was asked for than it shows."""
    shown = found[:most]
    last = encode_place((shown[-1].created_at, shown[-1].id)) if len(found) > most else None
    return Rows(shown, last, "cursor" in view.query)
