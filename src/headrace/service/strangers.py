"""Requests of callers who have shown no credential yet: a few at once, so that they keep nobody else out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from headrace.service.attempts import place_of
from headrace.service.problems import RequestError

#: Bodies that are read at once for callers without a credential: of all of them, and of one address.
MOST, MOST_OF_ONE = 64, 16
#: Seconds that such a body may take to arrive.
SECONDS = 5.0


class Strangers:
    """Counts them while they send.

    >>> with Strangers(most=1).counted("192.0.2.7"):
    ...     pass
    """

    def __init__(self, *, most: int = MOST, most_of_one: int = MOST_OF_ONE) -> None:
        self._most, self._most_of_one = most, most_of_one
        self._sending: Counter[str] = Counter()

    @contextmanager
    def counted(self, address: str) -> Iterator[None]:
        """Count one of an address until the block ends. Raises RequestError 503."""
        place = place_of(address)
        if self._sending.total() >= self._most or self._sending[place] >= self._most_of_one:
            detail = "too many requests without a credential of the service are being sent: try again in a moment"
            raise RequestError(503, "too_many_requests", detail, headers={"retry-after": "1"})
        self._sending[place] += 1
        try:
            yield
        finally:
            self._sending[place] -= 1
            self._sending += Counter()
