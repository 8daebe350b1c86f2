"""Leaving a slot while something is waited for: a handler cannot be parked, only entered again from the top."""

from __future__ import annotations

from datetime import timedelta

#: Shorter waits keep the slot: leaving and entering again would take as long.
KEEP_SLOT = timedelta(seconds=2)


class ParkRequested(BaseException):
    """Raised inside a handler to leave its slot for `wait`, or until a signal comes.

    It is not an error, so that `except Exception` lets it pass. No attempt is spent. The handler runs again from its
    first line: `ctx.step` and model calls return what they stored, everything else is done again.
    """

    def __init__(self, wait: timedelta | None, reason: str, *, key: str | None = None) -> None:
        """`key`: the signal that ends the wait before; without `wait` it alone does."""
        super().__init__(reason)
        self.wait = wait
        self.key = key
        #: what is waited for, in words that end "it waits for …"
        self.reason = reason
