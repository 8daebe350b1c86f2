"""Identifiers. Every id is made by the caller, so that a submit retried after a lost answer is recognised."""

from __future__ import annotations

import os
import time
from uuid import UUID

_RANDOM_BITS = (1 << 74) - 1
_VERSION_AND_VARIANT = (0x7 << 76) | (0b10 << 62)


def uuid7() -> UUID:
    """Return a time-ordered UUID, version 7 (RFC 9562, section 5.7): 48 bits of milliseconds, 74 random bits.

    Time-ordered keys land on the right edge of the primary-key index, so bulk inserts touch few pages.

    >>> uuid7().version
    7
    """
    random = int.from_bytes(os.urandom(10)) & _RANDOM_BITS
    milliseconds = time.time_ns() // 1_000_000
    value = (milliseconds << 80) | _VERSION_AND_VARIANT | ((random >> 62) << 64) | (random & ((1 << 62) - 1))
    return UUID(int=value)
