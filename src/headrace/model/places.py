"""Places in lists, newest first, as opaque texts: where the next page begins."""

from __future__ import annotations

import base64
import binascii
from datetime import UTC, datetime, timedelta
from uuid import UUID

from headrace.model.errors import InvalidInputError
from headrace.model.job import Made

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def encode_place(place: Made) -> str:
    """Return a place in a list as an opaque text.

    >>> place = (datetime(2031, 1, 31, tzinfo=UTC), UUID(int=7))
    >>> decode_place(encode_place(place)) == place
    True
    """
    micros = (place[0] - _EPOCH) // _MICROSECOND
    return base64.urlsafe_b64encode(f"{micros}.{place[1].hex}".encode()).decode().rstrip("=")


def decode_place(cursor: str) -> Made:
    """Return the place of a cursor. Raises InvalidInputError for one that no page gave."""
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
        micros, _, run_id = text.partition(".")
        return _EPOCH + int(micros) * _MICROSECOND, UUID(hex=run_id)
    except (ValueError, OverflowError, binascii.Error):
        raise InvalidInputError("cursor", "must be the next_cursor of a page", cursor) from None
