"""Saying that a server does not answer: at once, and then now and again, not with each try."""

from __future__ import annotations

import asyncio
import logging

#: How often the same is said.
AGAIN_SECONDS = 10.0


class Outage:
    """What one loop says of tries that fail. Guaranteed: each kind of error at once, then once in AGAIN_SECONDS."""

    def __init__(self, log: logging.Logger, what: str) -> None:
        """`what` does not work, for people."""
        self._log, self._what = log, what
        #: When each kind of error was said last, by the event loop's clock.
        self._said_at: dict[type[Exception], float] = {}

    def note(self, error: Exception) -> None:
        """Say that a try failed, unless that was said just now."""
        now, said_at = asyncio.get_running_loop().time(), self._said_at.get(type(error))
        if said_at is None or now - said_at >= AGAIN_SECONDS:
            self._said_at[type(error)] = now
            self._log.warning("%s, trying again: %s", self._what, error)
