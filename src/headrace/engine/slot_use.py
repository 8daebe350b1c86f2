"""How the slots of one queue were used between two looks: at most how many at once, and whether mostly in waiting.

Calls of models wait for their quota in the slot, or leave it when that takes longer (`ParkRequested`). Handlers that
run in other processes tell only of the latter.
"""

from __future__ import annotations

import threading

from headrace.ports.clock import Clock

#: From this share on slots, or the attempts that ended, count as held up by a limit.
MOSTLY = 0.5


class SlotUse:
    """Counts the attempts of a queue that run, those that wait, and those that left for a limit. Safe for threads."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._running = self._waiting = self._peak = 0
        self._ended = self._left = 0
        #: Seconds of all slots together.
        self._used_seconds = self._waited_seconds = 0.0
        self._at = clock.monotonic()

    def begin(self) -> AttemptWaits:
        """Count an attempt that begins; `end` takes what is returned."""
        with self._lock:
            self._advance()
            self._running += 1
            self._peak = max(self._peak, self._running)
        return AttemptWaits(self)

    def end(self, waits: AttemptWaits, *, limited: bool) -> None:
        """Count its end; `limited`: it left its slot for a quota or a budget."""
        waits.close()
        with self._lock:
            self._advance()
            self._running -= 1
            self._ended += 1
            self._left += limited

    def wait(self, change: int) -> None:
        """Count attempts that begin to wait, or wait no longer."""
        with self._lock:
            self._advance()
            self._waiting += change

    def look(self) -> tuple[int, bool]:
        """Return the most slots in use at once since the last look, and whether a limit holds up what runs."""
        with self._lock:
            self._advance()
            waits = self._used_seconds > 0 and self._waited_seconds >= MOSTLY * self._used_seconds
            leaves = self._left > 0 and self._left >= MOSTLY * self._ended
            used = self._peak
            self._used_seconds = self._waited_seconds = 0.0
            self._ended = self._left = 0
            self._peak = self._running
            return used, waits or leaves

    def _advance(self) -> None:
        now = self._clock.monotonic()
        passed, self._at = max(0.0, now - self._at), now
        self._used_seconds += passed * self._running
        self._waited_seconds += passed * self._waiting


class AttemptWaits:
    """One attempt, of which any number of calls may wait at once."""

    def __init__(self, use: SlotUse) -> None:
        self._use = use
        self._calls = 0
        self._closed = False

    def begin(self) -> None:
        """One of its calls waits."""
        self._calls += 1
        if self._calls == 1 and not self._closed:
            self._use.wait(1)

    def end(self) -> None:
        """That call waits no longer."""
        self._calls -= 1
        if self._calls == 0 and not self._closed:
            self._use.wait(-1)

    def close(self) -> None:
        """The attempt has ended; a call of it that goes on counts no more."""
        if self._calls > 0 and not self._closed:
            self._use.wait(-1)
        self._closed = True
