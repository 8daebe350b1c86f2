"""The limiter in memory: the buckets of the gate, for calls that are not jobs."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta

from headrace.model.limits import Rate
from headrace.ports.limiter import Taken
from headrace.stores.memory.buckets import NOW
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
    async def take(self, wanted: Mapping[str, float], *, some: bool = False) -> Taken:
        """Take all, or of each what is there."""
        now, buckets = self._state.now(), self._state.limits.buckets
        rated = {name: buckets[name] for name in wanted if name in buckets and buckets[name].rate is not None}
        unknown = frozenset(wanted) - frozenset(rated)
        waits = {name: bucket.wait(wanted[name], now) for name, bucket in rated.items()}
        wait = max(waits.values(), default=NOW)
        units: dict[str, float] = {}
        if not some and (wait or unknown):
            return Taken(units, wait, unknown)
        for name, bucket in rated.items():
            closed = bucket.closed_until is not None and bucket.closed_until > now
            there = 0.0 if closed else max(0.0, bucket.level_at(now))
            units[name] = wanted[name] if not waits[name] else min(there, wanted[name])
            bucket.change(-units[name], now)
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
