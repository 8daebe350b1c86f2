"""Identifiers. Every id is made by the caller, so that a submit retried after a lost answer is recognised."""

from __future__ import annotations

import os
import struct
import time
from uuid import UUID, SafeUUID, uuid5

from headrace.model.errors import InvalidInputError

_VERSION_AND_VARIANT = (0x7 << 76) | (0b10 << 62)
#: 74 random bits: 12 behind the version, 62 behind the variant.
_RANDOM = struct.Struct(">HQ")
_HIGH, _LOW = (1 << 12) - 1, (1 << 62) - 1

_set = object.__setattr__


def uuid7() -> UUID:
    """Return a time-ordered UUID, version 7 (RFC 9562, section 5.7): 48 bits of milliseconds, 74 random bits.

    Time-ordered keys land on the right edge of the primary-key index, so bulk inserts touch few pages.

    >>> uuid7().version
    7
    """
    high, low = _RANDOM.unpack(os.urandom(_RANDOM.size))
    return _uuid((time.time_ns() // 1_000_000 << 80) | _VERSION_AND_VARIANT | (high & _HIGH) << 64 | low & _LOW)


def uuid7s(count: int) -> list[UUID]:
    """Return that many ids of this moment in ascending order: one look at the clock and one at the random source.

    >>> ids = uuid7s(3)
    >>> ids == sorted(set(ids))
    True
    """
    now = (time.time_ns() // 1_000_000 << 80) | _VERSION_AND_VARIANT
    random = _RANDOM.iter_unpack(os.urandom(_RANDOM.size * count)) if count else ()
    return [_uuid(value) for value in sorted([now | (high & _HIGH) << 64 | low & _LOW for high, low in random])]


def node_identity(run_id: UUID, path: str) -> UUID:
    """Return what stands for a node of a run, whichever job calls it: always the same, and no other node's.

    >>> run_id = UUID(int=1)
    >>> node_identity(run_id, "m[0]/pay") == node_identity(run_id, "m[1]/pay")
    False
    """
    return uuid5(run_id, path)


def _uuid(value: int) -> UUID:
    """Return a UUID of bits known to be valid; its constructor, made for all kinds of input, takes thrice as long."""
    made = object.__new__(UUID)
    _set(made, "int", value)
    _set(made, "is_safe", SafeUUID.unknown)
    return made


def parse_id(field: str, text: str) -> UUID:
    """Return the UUID of `text`. Raises InvalidInputError."""
    try:
        return UUID(text)
    except (ValueError, AttributeError, TypeError):
        raise InvalidInputError(field, "must be an id such as 01980000-0000-7000-8000-000000000000", text) from None
