"""Whether a pool lets anything pass, after what the provider said to this process and to others."""

from __future__ import annotations

from datetime import timedelta
from random import Random
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.llm.quota.reservation import Reservation

#: The first and the longest wait where the provider tells none, in seconds.
FIRST_WAIT, LONGEST_WAIT = 0.5, 30.0
#: A shorter one is not worth a closing of its own.
LEAST_WAIT = 0.05
#: A refusal of the call that goes ahead closes the pool for longer than it was closed before.
LONGER = 1.5
#: The call that goes ahead is let through when it is not refused for three times as long as refusals take.
LEAST_DOUBT, MOST_DOUBT = 0.1, 1.5


class Door:
    """Open, closed until an instant (time of the loop), or in doubt: one call goes ahead to see."""

    def __init__(self, random: Random) -> None:
        self._random = random
        #: how often it was closed
        self.closings = 0
        self.until = 0.0
        self.doubtful = False
        #: the call that went ahead, while nobody knows how it fared
        self.probe: Reservation | None = None
        #: for how long it was closed since it was last known to be open, in seconds
        self._last = 0.0
        self._usual_refusal = LEAST_DOUBT / 3

    def rest(self, now: float) -> float:
        """Return for how many seconds it is closed."""
        return max(0.0, self.until - now)

    @property
    def doubt_seconds(self) -> float:
        """How long the call that goes ahead must not be refused to count as let through."""
        return min(max(LEAST_DOUBT, 3 * self._usual_refusal), MOST_DOUBT)

    def closed_elsewhere(self, until: float) -> None:
        """Heed what another process was told."""
        if not self.doubtful:
            self.closings += 1
        self.doubtful, self.until = True, max(self.until, until)

    def refuse(self, reservation: Reservation, told: timedelta | None, now: float) -> float | None:
        """Close after a refusal; return for how many seconds all processes shall, None: they need not be told."""
        took = now - reservation.reserved_at
        self._usual_refusal += 0.3 * (min(took, MOST_DOUBT) - self._usual_refusal)
        if reservation.closings < self.closings:
            return self._refuse_late(told, now)
        was_probe, self.probe = reservation is self.probe, None
        wait = self._wait(told, longer=was_probe)
        self.closings += 1
        self.doubtful, self.until, self._last = True, max(self.until, now + wait), wait
        return wait

    def _refuse_late(self, told: timedelta | None, now: float) -> float | None:
        """Heed a call that was on its way when the pool was closed: it says nothing new, unless it is for longer."""
        wait = told.total_seconds() if told is not None else 0.0
        if not self.until > now or now + wait <= self.until:
            return None
        gained, self.until = now + wait - self.until, now + wait
        return wait if gained > FIRST_WAIT else None

    def _wait(self, told: timedelta | None, *, longer: bool) -> float:
        least = max(LEAST_WAIT, LONGER * self._last if longer else 0.0)
        if told is None:
            twice = min(max(FIRST_WAIT, 2 * self._last if longer else 0.0), LONGEST_WAIT)
            wait = twice * self._random.uniform(0.75, 1.25)
        else:
            wait = told.total_seconds()
        return max(wait, min(least, LONGEST_WAIT))

    def open(self) -> None:
        """Let everything pass again."""
        self.doubtful, self.probe, self.until, self._last = False, None, 0.0, 0.0
