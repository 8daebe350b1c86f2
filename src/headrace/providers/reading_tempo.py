"""How often streams are read: the more are open, the more is taken from each at once.

A model writes in small pieces, and each piece that is read on its own wakes the process. Of a few streams every piece
is read as it comes; from sixty-six on the pieces of a tenth of a second are read together, so that reading leaves
the process time for everything else.

All pauses end at common instants: what calls that were made side by side have written by then is there at once, and is
stored at once. Each with an instant of its own, the last of ten parts would be nearly always read a whole pause late.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Iterator

#: So many streams are read as they come; each further one lets all pause so much longer, up to the longest pause, in
#: steps of which each is twice the one before.
FREE, SECONDS_EACH, LONGEST = 16, 0.002, 0.1


class ReadingTempo:
    """The pauses of the streams of one client, on its event loop."""

    def __init__(self) -> None:
        self._open = 0
        #: Instants that are waited for, by their number and how far they lie apart.
        self._instants: dict[tuple[float, float], asyncio.Event] = {}
        #: The one that came last: some loops wake a moment too early, when it would be the next once more.
        self._came: tuple[float, float] | None = None

    @property
    def seconds(self) -> float:
        """How far the instants lie apart at which streams are read on.

        The longest pause, or the half of it, or the half of that …: whatever streams pause for at the time, they meet.

        >>> ReadingTempo().seconds
        0.0
        """
        most = max(0, self._open - FREE) * SECONDS_EACH
        return LONGEST * 2.0 ** min(0, math.floor(math.log2(most / LONGEST))) if most else 0.0

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count a stream as open within the block."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def pause(self) -> None:
        """Pause until the next common instant; of few streams not at all."""
        if seconds := self.seconds:
            await self._instant(seconds).wait()

    def _instant(self, seconds: float) -> asyncio.Event:
        """Return the next of the instants that lie so many seconds apart: one timer wakes all who wait for it."""
        loop = asyncio.get_running_loop()
        instant = _next(loop.time(), seconds)
        if instant == self._came:
            instant = instant[0] + 1, seconds
        if instant not in self._instants:
            self._instants[instant] = asyncio.Event()
            loop.call_at(instant[0] * seconds, self._come, instant)
        return self._instants[instant]

    def _come(self, instant: tuple[float, float]) -> None:
        self._came = instant
        self._instants.pop(instant).set()


def _next(now: float, seconds: float) -> tuple[float, float]:
    """Return the next instant of those that lie so many seconds apart: its number, and how far they lie apart.

    >>> _next(7.75, 0.5), _next(8.0, 0.5)
    ((16.0, 0.5), (17.0, 0.5))
    """
    return now // seconds + 1, seconds
