"""How often streams are read: the more are open, the more is taken from each at once.

A model writes in small pieces, and each piece that is read on its own wakes the process. Of a few streams every piece
is read as it comes; of hundreds the pieces of a twentieth of a second are read together, so that reading leaves the
process time for everything else. Where several come in that time they are also given together, with the next one: to
give one costs more than to read it.
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
#: Where so many lie ready behind a pause the next one is not far.
DENSE = 2


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


class Gathering:
    """The pauses of one stream, and which of its pieces wait for the next one, so that several are given together."""

    def __init__(self, tempo: ReadingTempo) -> None:
        self._tempo = tempo
        #: When the last pause was over, how many pieces have been read since that lay ready then, and the last of them.
        self._resumed, self._ready, self._lay_ready = 0.0, 0, False
        self._is_dense = False

    def holds_back(self) -> bool:
        """Whether the piece that was just read waits for the next one: it lay ready, and pieces come densely."""
        self._lay_ready = time.monotonic() - self._resumed < _AT_ONCE
        self._ready += self._lay_ready
        return self._lay_ready and self._is_dense

    async def pause(self) -> None:
        """Pause as long as is due: behind a piece that had to be waited for."""
        if self._lay_ready:
            return
        self._is_dense, self._ready = self._ready >= DENSE, 0
        seconds = self._tempo.seconds
        if seconds:
            await asyncio.sleep(seconds)
        self._resumed = time.monotonic() if seconds else 0.0
