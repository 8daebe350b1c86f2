"""What pages remember in this process of figures that the store tells only as they are now."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime

#: Points that a line has, and seconds that lie between two at least.
MOST_POINTS, LEAST_SECONDS = 300, 1.0


class History:
    """The last values of a few figures, oldest first.

    >>> from datetime import UTC
    >>> history = History(2)
    >>> for second in range(3):
    ...     history.note(datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC), (second, 2.0 * second))
    >>> history.line(1)
    [2.0, 4.0]
    """

    def __init__(self, most: int = MOST_POINTS) -> None:
        self._points: deque[tuple[datetime, Sequence[float]]] = deque(maxlen=most)

    def note(self, now: datetime, values: Sequence[float]) -> None:
        """Note the figures of a moment; one that is too near to the last is left out."""
        if self._points and (now - self._points[-1][0]).total_seconds() < LEAST_SECONDS * 0.9:
            return
        self._points.append((now, values))

    def line(self, place: int) -> list[float]:
        """Return the values of one figure."""
        return [values[place] for _, values in self._points]
