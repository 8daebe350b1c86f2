"""How the parts of a batch go out: those of the plan, in waves where there are many, then what is still missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.apps.details.kinds import even_sizes, joined_parts, kind_of
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
    #: Index of its first part in the batch, and of that one's first call.
    start: int
    first_call: int
    #: Of each part the items of its calls, which are made side by side.
    parts: tuple[tuple[int, ...], ...]

    def correlation(self, batch_id: str) -> str:
        """Return what its events have in common."""
        return departure_id(batch_id, self.number)

    def answered(self, batch_id: str, items: Iterable[Mapping[str, Any]], told: Collection[str] = ()) -> list[bool]:
        """Return of each part that is not among those that `told` whether all of its items are among these.

        >>> Departure(1, 0, 0, ((1,), (1, 1))).answered("b", [{"subtask_id": "b:0"}, {"subtask_id": "b:1"}])
        [True, False]
        """
        found = Counter(item["subtask_id"] for item in items)
        parts = [one for one in self.subtasks(batch_id) if one["subtask_id"] not in told]
        return [found[one["subtask_id"]] >= one["count"] for one in parts]

    def subtasks(self, batch_id: str) -> list[dict[str, Any]]:
        """Return the arguments of its subtasks.

        >>> Departure(1, 0, 0, ((2, 1),)).subtasks("b")
        [{'subtask_id': 'b:0', 'count': 3, 'batch_index': 0, 'calls': 2, 'first_call': 0}]
        """
        told, call = [], self.first_call
        for index, sizes in enumerate(self.parts, self.start):
            told.append({
                "subtask_id": subtask_id(batch_id, index), "count": sum(sizes), "batch_index": index,
                "calls": len(sizes), "first_call": call,
            })  # fmt: skip
            call += len(sizes)
        return told

    def following(self, parts: tuple[tuple[int, ...], ...]) -> Departure:
        """Return the one behind it, with these parts."""
        calls = sum(map(len, self.parts))
        return Departure(self.number + 1, self.start + len(self.parts), self.first_call + calls, parts)


def waves(type_: str, sizes: Sequence[int]) -> list[Departure]:
    """Return the departures of the calls of a plan: all at once of a batch with a promise of time.

    Calls smaller than a sub-batch of the type go together in one, which is one job, one request and one answer.

    >>> [len(one.parts) for one in waves("skill", [10] * 40)], waves("skill", [5, 5, 4])[0].parts
    ([16, 16, 8], ((5, 5), (4,)))
    """
    most, largest = len(sizes) if sum(sizes) <= MOST_PROMISED else WAVE, kind_of(type_).size
    departures: list[Departure] = []
    for start in range(0, len(sizes), most):
        parts = joined_parts(sizes[start : start + most], largest)
        departures.append(departures[-1].following(parts) if departures else Departure(1, 0, 0, parts))
    return departures


def top_up(request: DetailsRequest, missing: int, last: Departure) -> Departure:
    """Return the departure for what is missing after `last`.

    >>> from headrace.apps.details.request import parse_request
    >>> top_up(parse_request({"type": "skill", "count": 30}), 12, Departure(1, 0, 0, ((10,), (10,), (10,))))
    Departure(number=2, start=3, first_call=3, parts=((4, 4), (4,)))
    """
    size = kind_of(request.type).size
    largest = max(SHORT, size if missing > SHORT * WAVE else SHORT)
    return last.following(joined_parts(even_sizes(missing, largest)[:WAVE], size))
