"""The limiter in memory: the buckets of the gate, for calls that are not jobs."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from headrace.model.limits import Level, Rate
from headrace.ports.limiter import Taken
from headrace.stores.memory.buckets import NOW, Bucket
from headrace.stores.memory.state import State, atomic


class MemoryLimiter:
    """`ports.limiter.Limiter` over shared dicts; the port says what each verb promises."""

    def __init__(self, state: State) -> None:
        self._state = state

    @atomic
    async def declare(self, rates: Mapping[str, Rate]) -> None:
        """Set rates; a bucket that was not known starts empty."""
        for name, rate in rates.items():
            self._state.limits.buckets.declare(name, rate, self._state.now(), empty=True)

    @atomic
    async def take(
        self, wanted: Mapping[str, float], *, some: bool = False, least: Mapping[str, float] | None = None
    ) -> Taken:
        """Take all, or of each what is there."""
        now, buckets = self._state.now(), self._state.limits.buckets
        rated = {name: buckets[name] for name in wanted if name in buckets and buckets[name].rate is not None}
        unknown = frozenset(wanted) - frozenset(rated)
        for bucket in rated.values():
            bucket.heed_clock(now)
        if some:
            return _take_some(rated, wanted, least or {}, now, unknown)
        wait = max((bucket.wait(wanted[name], now) for name, bucket in rated.items()), default=NOW)
        units = {} if wait or unknown else dict(wanted)
        for name, amount in units.items():
            rated[name].change(-amount, now)
        return Taken(units, wait, unknown)

    @atomic
    async def give_back(self, units: Mapping[str, float]) -> None:
        """Return units."""
        for name, amount in units.items():
            if name in self._state.limits.buckets:
                self._state.limits.buckets[name].change(amount, self._state.now())

    @atomic
    async def close_bucket(self, name: str, wait: timedelta) -> None:
        """Let nothing pass for some time."""
        now = self._state.now()
        self._state.limits.buckets.close(name, now + wait, now)

    @atomic
    async def open_bucket(self, name: str) -> None:
        """End a closing."""
        if name in self._state.limits.buckets:
            self._state.limits.buckets[name].closed_until = None

    @atomic
    async def forget(self, name: str) -> None:
        """Remove a bucket."""
        self._state.limits.buckets.pop(name, None)

    @atomic
    async def levels(self, names: Collection[str]) -> Mapping[str, Level]:
        """Return how buckets stand."""
        now, buckets = self._state.now(), self._state.limits.buckets
        found = {name: buckets[name] for name in names if name in buckets}
        rated = {name: bucket for name, bucket in found.items() if bucket.rate is not None}
        return {name: Level(bucket.level_at(now), bucket.closed(now)) for name, bucket in rated.items()}


def _take_some(
    rated: Mapping[str, Bucket], wanted: Mapping[str, float], least: Mapping[str, float], now: datetime,
    unknown: frozenset[str],
) -> Taken:  # fmt: skip
    units, waits = {}, []
    for name, bucket in rated.items():
        floor = least.get(name, 0.0)
        units[name] = 0.0 if bucket.wait(floor, now) else max(floor, min(wanted[name], bucket.level_at(now)))
        bucket.change(-units[name], now)
        if units[name] < wanted[name]:
            waits.append(bucket.wait(min(wanted[name] - units[name], floor or math.inf), now))
    return Taken(units, min(filter(None, waits), default=NOW), unknown)
