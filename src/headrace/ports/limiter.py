"""The limiter port: token buckets that all processes share, in the store or beside it (Redis).

What a limiter holds may be thrown away at any time: a bucket that is not known there is declared again from the
store, and starts empty rather than with a burst that was perhaps used just before.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from headrace.model.limits import Level, Rate


@dataclass(frozen=True, slots=True)
class Taken:
    """What a limiter gave: units by bucket, and, where something was missing, how long to wait before asking again.

    With `some`: until the first of the buckets that gave less has more, or its least.
    """

    units: Mapping[str, float]
    wait: timedelta = timedelta()
    #: asked for but not declared here: `declare` them, then ask again
    unknown: frozenset[str] = frozenset()


class Limiter(Protocol):
    """Token buckets by name, filled by the server's clock. All methods raise StoreUnavailableError."""

    async def declare(self, rates: Mapping[str, Rate]) -> None:
        """Set the rates of buckets; a level that is known is kept."""
        ...

    async def take(
        self, wanted: Mapping[str, float], *, some: bool = False, least: Mapping[str, float] | None = None
    ) -> Taken:
        """Take the wanted units of every bucket, or, if one has not enough, of none; in one atomic step.

        With `some`, take of each by itself what is there, up to what is wanted, but nothing of a bucket that has less
        than its `least`. Where that is more than its burst, a full bucket gives it and is left in debt. A bucket that
        is closed gives nothing.
        """
        ...

    async def give_back(self, units: Mapping[str, float]) -> None:
        """Return units that were not used; a bucket never holds more than its burst."""
        ...

    async def close_bucket(self, name: str, wait: timedelta) -> None:
        """Let nothing pass for `wait`: the provider said so. A bucket that is closed for longer stays closed."""
        ...

    async def open_bucket(self, name: str) -> None:
        """End a closing; a bucket that is open, or not known, is no error."""
        ...

    async def forget(self, name: str) -> None:
        """Remove a bucket, its closing too; one that is not known is no error."""
        ...

    async def levels(self, names: Collection[str]) -> Mapping[str, Level]:
        """Return how buckets stand, and take nothing; those that have no rate here are left out."""
        ...
