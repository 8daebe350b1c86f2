"""What one call has reserved of a pool; it is ended exactly once."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import timedelta
from typing import Protocol

from headrace.model.quota import NO_HINT, QuotaHint
from headrace.model.usage import Usage


class Ending(Protocol):
    """Where reservations end: their pool in this process."""

    name: str

    def settle(self, one: Reservation, usage: Usage, hint: QuotaHint, per_token: timedelta | None) -> None:
        """Charge what was used."""
        ...

    def refund(self, one: Reservation, hint: QuotaHint) -> None:
        """Charge nothing."""
        ...

    def refuse(self, one: Reservation, told: timedelta | None, hint: QuotaHint, *, overloaded: bool = False) -> None:
        """Close the pool."""
        ...

    def lose(self) -> None:
        """Forget a call that nobody ended; may be called by any thread."""
        ...


class Reservation:
    """Units of a pool for one call. The first of the verbs that end it counts, later ones do nothing.

    One that is dropped unended counts as a call that used all it had reserved: nobody knows whether it was sent.
    """

    __slots__ = ("_ended", "_pool", "closings", "reserved_at", "units")

    def __init__(self, pool: Ending, units: Mapping[str, float], *, reserved_at: float, closings: int) -> None:
        self._pool, self._ended = pool, False
        self.units, self.reserved_at = units, reserved_at
        #: how often the pool had been closed when it was reserved
        self.closings = closings

    @property
    def pool(self) -> str:
        """The name of its pool."""
        return self._pool.name

    def settle(self, usage: Usage, hint: QuotaHint = NO_HINT, *, per_token: timedelta | None = None) -> None:
        """Charge what the call used and return the rest; without any tokens in `usage`, what was reserved was used.

        `per_token`: time per token of the answer, without the wait for the first: a model that slows down is asked
        less where its limits are unknown.
        """
        if self._end():
            self._pool.settle(self, usage, hint, per_token)

    def refund(self, hint: QuotaHint = NO_HINT) -> None:
        """Return all of it: the call was not sent, or failed without being counted."""
        if self._end():
            self._pool.refund(self, hint)

    def refuse(self, retry_after: timedelta | None, hint: QuotaHint = NO_HINT) -> None:
        """Close the pool for all processes: the provider said 429. None: it did not say for how long."""
        if self._end():
            self._pool.refuse(self, retry_after, hint)

    def overload(self, retry_after: timedelta | None, hint: QuotaHint = NO_HINT) -> None:
        """Close the pool for a while: the provider has too much to do (503, 529)."""
        if self._end():
            self._pool.refuse(self, retry_after, hint, overloaded=True)

    def _end(self) -> bool:
        ended, self._ended = self._ended, True
        return not ended

    def __del__(self) -> None:
        if not self._ended:
            self._ended = True
            # At the interpreter's end, or after that of the loop, there is nobody left to tell.
            with contextlib.suppress(Exception):
                self._pool.lose()
