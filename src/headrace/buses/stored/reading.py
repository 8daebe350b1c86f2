"""How far a member is in a partition."""

from __future__ import annotations

from collections.abc import Sequence

from headrace.model.message_log import Share, Stored


class Reading:
    """A partition that is read: `next` is the next offset."""

    def __init__(self, share: Share) -> None:
        self.share = share
        self.next = self._done = share.offset

    @property
    def unfinished(self) -> int:
        """How many messages were read and not committed, as the backlog of the log counts them.

        >>> reading = Reading(Share("t", 0, 1, 5)); reading.next = 9; reading.done(7); reading.unfinished
        2
        """
        return self.next - self._done

    def done(self, offset: int) -> None:
        """Note that nothing before an offset is left to do."""
        self._done = max(self._done, offset)

    def go_on(self, stored: Sequence[Stored]) -> None:
        """Note that messages were read; what is missing before them is not kept any more."""
        if not stored:
            return
        if stored[0].offset > self.next:
            self.done(stored[0].offset)
        self.next = stored[-1].offset + 1
