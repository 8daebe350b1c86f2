"""How often streams are read: the more are open, the more is taken from each at once.

A model writes in small pieces, and each piece that is read on its own wakes the process. Of a few streams every piece
is read as it comes; of hundreds the pieces of a twentieth of a second are read together, so that reading leaves the
process time for everything else.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator

#: So many streams are read as they come; each further one makes all pause so much longer, up to the longest pause.
FREE, SECONDS_EACH, LONGEST = 16, 0.0005, 0.05
#: What came during a pause is read in less time than this: behind it the reader has waited for more.
_AT_ONCE = 0.002


class ReadingTempo:
    """The pauses of the streams of one client."""

    def __init__(self) -> None:
        self._open = 0

    @property
    def seconds(self) -> float:
        """How long a stream pauses behind a piece that it had to wait for.

        >>> ReadingTempo().seconds
        0.0
        """
        return min(LONGEST, max(0, self._open - FREE) * SECONDS_EACH)

    @contextlib.contextmanager
    def counted(self) -> Iterator[None]:
        """Count a stream as open within the block."""
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1

    async def pause(self, resumed: float) -> float:
        """Pause as long as is due; `resumed`: when this stream ended its last pause. Return when it ended this one."""
        seconds = self.seconds
        if not seconds or time.monotonic() - resumed < _AT_ONCE:
            return resumed
        await asyncio.sleep(seconds)
        return time.monotonic()
