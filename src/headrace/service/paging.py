"""Pages of lists: how many, and where the next one begins."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from headrace.model.errors import InvalidInputError
from headrace.model.run import StartedAt

#: Entries of a page at most, and unless asked for.
MOST, USUAL = 200, 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

Limit = Annotated[int, Field(ge=1, le=MOST, description="how many")]
Cursor = Annotated[str | None, Field(min_length=1, max_length=200, description="`next_cursor` of the page before")]


class Page(BaseModel):
    """What the query of a list may have; other names are refused."""

    model_config = ConfigDict(extra="forbid")

    limit: Limit = USUAL
    cursor: Cursor = None


def encode_place(place: StartedAt) -> str:
    """Return a place in a list of runs as an opaque text.

    >>> place = (datetime(2031, 1, 31, tzinfo=UTC), UUID(int=7))
    >>> decode_place(encode_place(place)) == place
    True
    """
    micros = (place[0] - _EPOCH) // _MICROSECOND
    return base64.urlsafe_b64encode(f"{micros}.{place[1].hex}".encode()).decode().rstrip("=")


def decode_place(cursor: str) -> StartedAt:
    """Return the place of a cursor. Raises InvalidInputError for one that no page gave."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        micros, _, run_id = text.partition(".")
        return _EPOCH + int(micros) * _MICROSECOND, UUID(hex=run_id)
    except (ValueError, OverflowError, binascii.Error):
        raise InvalidInputError("cursor", "must be the next_cursor of a page", cursor) from None
