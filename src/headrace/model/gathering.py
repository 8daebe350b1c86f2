"""Gathering: jobs of one task that one call of its handler takes together, and how long it waits for more of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta

from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.numbers import check_whole

MAX_BATCH_SIZE = 1_000
#: A gather waits less than the overdue sweep allows an attempt beyond its timeout.
MAX_WAIT = timedelta(seconds=5)
#: Nothing has come for so many of the usual gaps between jobs: nothing more is coming.
PATIENT_GAPS = 4
#: Shorter gaps than this are not told apart: a claim and its acks lie between them.
LEAST_PATIENCE = 0.005
#: Weight of the newest gap in the usual one.
NEWEST = 0.3


@dataclass(frozen=True, slots=True)
class Gather:
    """A handler takes up to `batch_size` jobs at once, and waits at most `max_wait` for them."""

    batch_size: int
    max_wait: timedelta = timedelta(milliseconds=100)

    @classmethod
    def parse(cls, batch_size: object, max_wait: float | str | timedelta = "100ms") -> Gather:
        """Return the checked rule. Raises InvalidInputError naming the field.

        >>> Gather.parse(50).max_wait
        datetime.timedelta(microseconds=100000)
        """
        most = check_whole("batch_size", batch_size, most=MAX_BATCH_SIZE)
        wait = parse_duration(max_wait, field="max_wait")
        if wait > MAX_WAIT:
            raise InvalidInputError("max_wait", "must be at most 5 s", max_wait)
        return cls(most, wait)


class Pace:
    """The usual gap between jobs that come, in seconds.

    >>> pace = Pace(longest=0.1)
    >>> pace.note(10.0); pace.patience
    0.0
    >>> pace.note(10.05); pace.patience
    0.1
    """

    def __init__(self, *, longest: float) -> None:
        self._longest = longest
        self._last: float | None = None
        self._usual: float | None = None

    def note(self, at: float) -> None:
        """A job came."""
        last, self._last = self._last, at
        if last is None:
            return
        gap = at - last
        if self._usual is None or gap > self._longest:
            # Idle before: what was usual then says nothing, and how long it was idle neither.
            self._usual = min(gap, 2 * self._longest)
        else:
            self._usual += NEWEST * (gap - self._usual)

    @property
    def patience(self) -> float:
        """How long after the last job another one is likely to come; zero where none is within the longest wait."""
        if self._usual is None or self._usual > self._longest:
            return 0.0
        return min(self._longest, max(LEAST_PATIENCE, PATIENT_GAPS * self._usual))
