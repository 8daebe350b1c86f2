"""What the items of a batch are, one letter each: thousands of them in a short text, for grids that are drawn anew."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from headrace.model.job import JobState
from headrace.model.numbers import check_whole

#: Items of one reading at most.
MOST_STATES = 10_000
#: Where a reading may begin: ordinals are numbers of 31 bits.
MOST_FIRST = 2**31 - 1 - MOST_STATES
#: The letter of each state. Ready is waiting, whether a gate has let the item pass or not.
LETTERS: Mapping[JobState, str] = MappingProxyType(
    {
        JobState.SCHEDULED: "s",
        JobState.READY: "w",
        JobState.RUNNING: "r",
        JobState.PARKED: "p",
        JobState.SUCCEEDED: "o",
        JobState.FAILED: "f",
        JobState.CANCELLED: "c",
    }
)
#: The letter of an item that is not there: not appended yet, or removed since its retention is over.
ABSENT = "."


@dataclass(frozen=True, slots=True)
class BatchStates:
    """The states of consecutive items of a batch; an item that was retried has that of its newest try.

    >>> BatchStates(first=20, letters="oofw", end=24).state_of(22)
    <JobState.FAILED: 'failed'>
    """

    #: Ordinal of the first letter.
    first: int
    #: See `LETTERS` and `ABSENT`; they end with the last item that was appended, or with the limit.
    letters: str
    #: Ordinal behind the last item that was appended.
    end: int

    def state_of(self, ordinal: int) -> JobState | None:
        """Return the state of an item; None where it is not there, or is not among these."""
        place = ordinal - self.first
        return _STATES.get(self.letters[place]) if 0 <= place < len(self.letters) else None


_STATES = {letter: state for state, letter in LETTERS.items()}


def check_range(first: int, limit: int) -> None:
    """Raise InvalidInputError unless so many items may be read from an ordinal on."""
    check_whole("first", first, least=0, most=MOST_FIRST)
    check_whole("limit", limit, most=MOST_STATES)


class StateCells:
    """Gathers states of the items from `first` to before `end`, at most `limit`; what is noted later hides the former.

    >>> cells = StateCells(first=10, limit=100, end=14)
    >>> cells.span(0, 13, JobState.READY)
    >>> cells.note([12, 10], JobState.RUNNING)
    >>> cells.states
    BatchStates(first=10, letters='rwr.', end=14)
    """

    def __init__(self, *, first: int, limit: int, end: int) -> None:
        self._first, self._end = first, end
        self._cells = bytearray(ABSENT.encode() * min(limit, max(end - first, 0)))

    def note(self, ordinals: Iterable[int], state: JobState) -> None:
        """Note items of one state; those that are outside are left out."""
        cells, first, letter = self._cells, self._first, ord(LETTERS[state])
        size = len(cells)
        for ordinal in ordinals:
            place = ordinal - first
            if 0 <= place < size:
                cells[place] = letter

    def span(self, begin: int, end: int, state: JobState) -> None:
        """Note the state of all items from `begin` to before `end`."""
        size = len(self._cells)
        start, stop = (min(max(ordinal - self._first, 0), size) for ordinal in (begin, end))
        self._cells[start:stop] = LETTERS[state].encode() * (stop - start)

    @property
    def states(self) -> BatchStates:
        """What was gathered."""
        return BatchStates(self._first, self._cells.decode("ascii"), self._end)
