"""How far a partition is worked off, where its messages end out of order."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field


@dataclass(slots=True)
class Progress:
    """Offsets of one partition that were received, and which of them are done.

    >>> progress = Progress()
    >>> for offset in (7, 8, 9):
    ...     progress.begin(offset)
    >>> progress.end(8); progress.next_offset is None
    True
    >>> progress.end(7); progress.next_offset
    9
    """

    _begun: deque[int] = field(default_factory=deque)
    _done: set[int] = field(default_factory=set)
    #: The next offset to be read once all before it are done; None: nothing new is done.
    next_offset: int | None = None

    def begin(self, offset: int) -> None:
        """Note a message that was received, in the order of offsets."""
        self._begun.append(offset)

    def end(self, offset: int) -> None:
        """Note that a message is done."""
        self._done.add(offset)
        while self._begun and self._begun[0] in self._done:
            first = self._begun.popleft()
            self._done.discard(first)
            self.next_offset = first + 1

    def take(self) -> int | None:
        """Return `next_offset` to be committed, and forget it."""
        taken, self.next_offset = self.next_offset, None
        return taken

    def give_back(self, offset: int) -> None:
        """Let an offset be committed again that could not be, unless a later one is to be anyway."""
        self.next_offset = max(offset, self.next_offset or 0)

    @property
    def unfinished(self) -> int:
        """How many messages are not done."""
        return len(self._begun) - len(self._done)

    @property
    def span(self) -> int:
        """How many messages stand between the first that is not done and the last received."""
        return len(self._begun)
