"""A clock that moves only when a test moves it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headrace.model.errors import InvalidInputError

_START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """Stands still until `advance` or `set_now`; implements `ports.clock.Clock`.

    >>> clock = FakeClock()
    >>> clock.advance(timedelta(days=1))
    >>> clock.now().isoformat()
    '2026-01-02T00:00:00+00:00'
    """

    def __init__(self, now: datetime = _START) -> None:
        """Start at `now`, an aware instant. Raises InvalidInputError for a naive one."""
        self._now = _aware(now)
        self._monotonic = 0.0

    def now(self) -> datetime:
        """Return the instant the clock stands at, aware, in UTC."""
        return self._now

    def monotonic(self) -> float:
        """Return the seconds the clock was advanced by in all."""
        return self._monotonic

    def advance(self, step: timedelta) -> None:
        """Move both clocks forward by `step`. Raises InvalidInputError for a negative step: use `set_now`."""
        if step < timedelta():
            raise InvalidInputError("step", "must not be negative", step)
        self._now += step
        self._monotonic += step.total_seconds()

    def set_now(self, now: datetime) -> None:
        """Step the wall clock alone, as an operator or NTP does; the monotonic clock stays."""
        self._now = _aware(now)


def _aware(now: datetime) -> datetime:
    if now.tzinfo is None:
        raise InvalidInputError("now", "must be an aware instant", now)
    return now.astimezone(UTC)
