"""What pages remember in this process of figures that the store tells only as they are now."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise

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

    def per_second(self, place: int, within: timedelta) -> float | None:
        """Return by how much a figure that only grows grew lately; None: too little is known.

        It may fall when whoever told a part of it is gone: that counts as nothing.

        >>> from datetime import UTC
        >>> history = History()
        >>> for second, value in enumerate((10.0, 14.0, 2.0, 4.0)):
        ...     history.note(datetime(2026, 1, 1, 0, 0, second, tzinfo=UTC), (value,))
        >>> history.per_second(0, timedelta(minutes=1))
        2.0
        """
        points = [point for point in self._points if self._points[-1][0] - point[0] <= within]
        if len(points) < 2:
            return None
        grown = sum(max(new[place] - old[place], 0.0) for (_, old), (_, new) in pairwise(points))
        return grown / (points[-1][0] - points[0][0]).total_seconds()

    def line(self, place: int) -> list[float]:
        """Return the values of one figure."""
        return [values[place] for _, values in self._points]
