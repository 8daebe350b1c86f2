"""How the parts of a batch go out: those of the plan, in waves where there are many, then what is still missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.apps.details.kinds import even_sizes, kind_of
from headrace.apps.details.names import departure_id, subtask_id
from headrace.apps.details.planning import MOST_PROMISED, WAVE
from headrace.apps.details.request import DetailsRequest

#: Rounds for what is missing after all parts of the plan.
MOST_TOP_UPS = 3
#: So many missing items are one short call each round; more are cut.
SHORT = 4


@dataclass(frozen=True, slots=True)
class Departure:
    """Parts that go out together, and are waited for together."""

    #: From 1.
    number: int
    #: Index of its first part in the batch.
    start: int
    sizes: tuple[int, ...]

    def correlation(self, batch_id: str) -> str:
        """Return what its events have in common."""
        return departure_id(batch_id, self.number)

    def answered(self, batch_id: str, items: Iterable[Mapping[str, Any]], told: Collection[str] = ()) -> list[bool]:
        """Return of each part that is not among those that `told` whether all of its items are among these.

        >>> Departure(1, 0, (1, 2)).answered("b", [{"subtask_id": "b:0"}, {"subtask_id": "b:1"}])
        [True, False]
        """
        found = Counter(item["subtask_id"] for item in items)
        parts = [one for one in self.subtasks(batch_id) if one["subtask_id"] not in told]
        return [found[one["subtask_id"]] >= one["count"] for one in parts]

    def subtasks(self, batch_id: str) -> list[dict[str, Any]]:
        """Return the arguments of its subtasks.

        >>> Departure(1, 0, (2,)).subtasks("b")
        [{'subtask_id': 'b:0', 'count': 2, 'batch_index': 0}]
        """
        return [
            {"subtask_id": subtask_id(batch_id, index), "count": size, "batch_index": index}
            for index, size in enumerate(self.sizes, self.start)
        ]


def waves(sizes: Sequence[int]) -> list[Departure]:
    """Return the departures of a plan: all at once of a batch with a promise of time.

    >>> [len(one.sizes) for one in waves([20] * 40)], len(waves([1] * 40))
    ([16, 16, 8], 1)
    """
    most = len(sizes) if sum(sizes) <= MOST_PROMISED else WAVE
    starts = range(0, len(sizes), most)
    return [Departure(number, start, tuple(sizes[start : start + most])) for number, start in enumerate(starts, 1)]


def top_up(request: DetailsRequest, missing: int, last: Departure) -> Departure:
    """Return the departure for what is missing after `last`.

    >>> from headrace.apps.details.request import parse_request
    >>> top_up(parse_request({"type": "skill", "count": 30}), 12, Departure(1, 0, (10, 10, 10)))
    Departure(number=2, start=3, sizes=(4, 4, 4))
    """
    largest = max(SHORT, kind_of(request.type).size if missing > SHORT * WAVE else SHORT)
    return Departure(last.number + 1, last.start + len(last.sizes), even_sizes(missing, largest)[:WAVE])
