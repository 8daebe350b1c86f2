"""Token buckets: what rate limits have left. The gate and the limiter take from the same ones."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from headrace.model.limits import Level, Rate

NOW = timedelta()


@dataclass(slots=True)
class Bucket:
    """A bucket that stood at `level` at the instant `at`; without a rate it is no limit."""

    at: datetime
    #: None until there is a rate: then it is full.
    level: float | None = None
    declared: Rate | None = None
    override: Rate | None = None
    closed_until: datetime | None = None

    @property
    def rate(self) -> Rate | None:
        """The rate in force."""
        return self.declared if self.override is None else self.override

    def level_at(self, now: datetime) -> float:
        """Return the level at an instant; zero without a rate."""
        if self.rate is None:
            return self.level or 0.0
        return self.rate.burst if self.level is None else self.rate.after(self.level, now - self.at)

    def settle(self, now: datetime) -> None:
        """Write down the level as it stands, before anything about it changes."""
        if self.rate is not None:
            self.level = self.level_at(now)
        self.at = now

    def heed_clock(self, now: datetime) -> None:
        """Take a bucket that was written ahead of the clock to stand at now: the clock was set back."""
        self.at = min(self.at, now)

    def wait(self, units: float, now: datetime) -> timedelta:
        """Return how long it must be left alone before `units` may pass; zero: now."""
        wait = self.rate.missing(self.level_at(now), units) if self.rate is not None else NOW
        return max(wait, self.closed(now))

    def closed(self, now: datetime) -> timedelta:
        """Return for how long nothing passes, however full it is."""
        return NOW if self.closed_until is None else max(self.closed_until - now, NOW)

    def change(self, units: float, now: datetime) -> None:
        """Add units, at most up to the burst; negative ones take, into debt if need be."""
        self.settle(now)
        if self.rate is not None and self.level is not None:
            self.level = min(self.rate.burst, self.level + units)


class Buckets(dict[str, Bucket]):
    """Buckets by name."""

    def known(self, name: str, now: datetime) -> Bucket:
        """Return a bucket, a new one if there is none."""
        return self.setdefault(name, Bucket(now))

    def declare(self, name: str, rate: Rate, now: datetime, *, empty: bool = False) -> None:
        """Set the declared rate and keep the level; one that had no rate before is full, or empty."""
        bucket = self.known(name, now)
        bucket.settle(now)
        if empty and bucket.level is None:
            bucket.level = 0.0
        bucket.declared = rate
        self._bound(bucket)

    def override(self, name: str, rate: Rate | None, now: datetime) -> None:
        """Set or remove an operator's rate and keep the level. Removing it makes no bucket."""
        if rate is None and name not in self:
            return
        bucket = self.known(name, now)
        bucket.settle(now)
        bucket.override = rate
        self._bound(bucket)

    def close(self, name: str, until: datetime, now: datetime) -> None:
        """Let nothing pass until then, or longer where it is closed for longer."""
        bucket = self.known(name, now)
        bucket.closed_until = max(until, bucket.closed_until or until)

    def standing(self, levels: Mapping[str, Level], now: datetime) -> Buckets:
        """Return buckets of the same rates at levels that are counted elsewhere; one that is unknown there is empty."""
        rates = {name: bucket.rate for name, bucket in self.items() if bucket.rate is not None}
        found = {name: levels.get(name, Level(0.0)) for name in rates}
        return Buckets(
            {name: Bucket(now, level.units, rates[name], None, now + level.closed) for name, level in found.items()}
        )

    @staticmethod
    def _bound(bucket: Bucket) -> None:
        if bucket.rate is not None and bucket.level is not None:
            bucket.level = min(bucket.rate.burst, bucket.level)
