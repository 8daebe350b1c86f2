"""Caches: their bounds, and what is told of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.model.errors import InvalidInputError
from headrace.model.numbers import check_whole

#: A value of a cache, as JSON, has at most so many bytes.
MAX_VALUE_BYTES = 1024 * 1024
LONGEST_TTL = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class CacheBounds:
    """How much a cache keeps, and how long."""

    entries: int
    #: of keys and values as UTF-8
    bytes: int
    #: from when an entry was put
    ttl: timedelta

    def __post_init__(self) -> None:
        check_whole("entries", self.entries)
        check_whole("bytes", self.bytes)
        if not timedelta() < self.ttl <= LONGEST_TTL:
            raise InvalidInputError("ttl", "must be longer than zero and at most 30d", self.ttl)


@dataclass(frozen=True, slots=True)
class CacheStats:
    """What a cache holds now, and what became of it since it was made.

    >>> CacheStats(hits=3, misses=1).hit_rate
    0.75
    """

    entries: int = 0
    bytes: int = 0
    hits: int = 0
    misses: int = 0
    #: entries that gave way to others
    evicted: int = 0
    #: entries whose time was over
    expired: int = 0

    @property
    def hit_rate(self) -> float:
        """The share of look-ups that found something, 0 to 1; 0 before the first."""
        asked = self.hits + self.misses
        return self.hits / asked if asked else 0.0
