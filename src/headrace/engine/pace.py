"""How fast something goes, and how long it will still take."""

from __future__ import annotations

from collections import deque
from datetime import timedelta


class Pace:
    """Estimates a rate from what was done lately.

    >>> pace = Pace(timedelta(seconds=30))
    >>> pace.note(0.0, 0); pace.note(10.0, 50)
    >>> pace.rate, pace.eta(50)
    (5.0, datetime.timedelta(seconds=10))
    """

    def __init__(self, window: timedelta = timedelta(seconds=30)) -> None:
        self._window = window.total_seconds()
        self._notes: deque[tuple[float, int]] = deque()

    def note(self, at: float, done: int) -> None:
        """Note how many were done at a monotonic time, in seconds."""
        if self._notes and done < self._notes[-1][1]:
            # A new round began: what was done before says nothing about it.
            self._notes.clear()
        self._notes.append((at, done))
        # The newest note outside the window stays: it is where the window begins.
        while len(self._notes) > 2 and self._notes[1][0] <= at - self._window:
            self._notes.popleft()

    @property
    def rate(self) -> float | None:
        """Done per second, or None while nothing can be said."""
        if len(self._notes) < 2:
            return None
        (first_at, first), (last_at, last) = self._notes[0], self._notes[-1]
        return (last - first) / (last_at - first_at) if last_at > first_at and last > first else None

    def eta(self, left: int) -> timedelta | None:
        """Return how long `left` more will take, or None while nothing can be said."""
        return None if self.rate is None else timedelta(seconds=left / self.rate)
