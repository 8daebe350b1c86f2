"""How often streams are read: the more are open, the more is taken from each at once.

A model writes in small pieces, and each piece that is read on its own wakes the process. Of a few streams every piece
is read as it comes; of hundreds the pieces of a twentieth of a second are read together, so that reading leaves the
process time for everything else.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

#: So many streams are read as they come; each further one makes all pause so much longer, up to the longest pause.
FREE, SECONDS_EACH, LONGEST = 16, 0.001, 0.1


class ReadingTempo:
    """The pauses of the streams of one client."""

    def __init__(self) -> None:
        self._open = 0

    @property
    def seconds(self) -> float:
        """How long a stream pauses behind each piece.

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

    async def pause(self) -> None:
        """Pause as long as is due; of few streams not at all."""
        if seconds := self.seconds:
            await asyncio.sleep(seconds)
