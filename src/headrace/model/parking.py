"""Leaving a slot while something is waited for: a handler cannot be parked, only entered again from the top."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import timedelta
from typing import Protocol

#: Shorter waits keep the slot: leaving and entering again would take as long.
KEEP_SLOT = timedelta(seconds=2)


class ParkRequested(BaseException):
    """Raised inside a handler to leave its slot for `wait`, or until a signal comes.

    It is not an error, so that `except Exception` lets it pass. No attempt is spent. The handler runs again from its
    first line: `ctx.step` and model calls return what they stored, everything else is done again.
    """

    def __init__(self, wait: timedelta | None, reason: str, *, key: str | None = None, limited: bool = False) -> None:
        """`key`: the signal that ends the wait before; without `wait` it alone does.

        `limited`: it is a quota or a budget that is waited for.
        """
        super().__init__(reason)
        self.wait = wait
        self.key = key
        self.limited = limited
        #: what is waited for, in words that end "it waits for …"
        self.reason = reason


class SlotWaits(Protocol):
    """Whoever wants to know when what runs in a slot waits for a limit."""

    def begin(self) -> None:
        """One of its calls waits."""
        ...

    def end(self) -> None:
        """That call waits no longer."""
        ...


#: The slot in which an attempt runs, where somebody wants to know.
current_slot: ContextVar[SlotWaits | None] = ContextVar("headrace_slot", default=None)


@contextmanager
def waits_for_limit() -> Iterator[None]:
    """Tell the slot, if there is one, that a quota or a budget is waited for inside."""
    slot = current_slot.get()
    if slot is None:
        yield
        return
    slot.begin()
    try:
        yield
    finally:
        slot.end()
