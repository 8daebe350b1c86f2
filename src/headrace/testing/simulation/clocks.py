"""Clocks of the simulated world: the store's, which alone decides, and those of processes, which drift."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from headrace.testing.simulation.loop import Actor, VirtualLoop

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


class StoreClock:
    """The time of the world."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop
        self._shown = (0.0, BEGINNING)

    def now(self) -> datetime:
        """Return the wall clock, aware, in UTC."""
        seconds = self._loop.now
        if self._shown[0] != seconds:
            self._shown = (seconds, BEGINNING + timedelta(seconds=seconds))
        return self._shown[1]

    def monotonic(self) -> float:
        """Return the seconds since the beginning."""
        return self._loop.now


class ActorClock:
    """The clock of one process: it runs at the process's rate, and its wall clock is off by `wrong`."""

    def __init__(self, loop: VirtualLoop, actor: Actor, wrong: timedelta) -> None:
        self._loop, self._actor, self._wrong = loop, actor, wrong

    def now(self) -> datetime:
        """Return the wall clock, aware, in UTC, and wrong."""
        return BEGINNING + self._wrong + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        """Return seconds that never go back and that count a frozen process."""
        return self._actor.local(self._loop.now)
