"""How the parts of a batch go out: those of the plan, in waves where there are many, then what is still missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headrace.apps.details.kinds import even_sizes, joined_parts, kind_of
from headrace.apps.details.names import departure_id, item_key, subtask_id
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
    #: The places that its parts fill in this order, by their keys; none: their own.
    places: tuple[str, ...] = ()

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
        told, call, places = list[dict[str, Any]](), self.first_call, list(self.places)
        for index, sizes in enumerate(self.parts, self.start):
            count = sum(sizes)
            told.append({
                "subtask_id": subtask_id(batch_id, index), "count": count, "batch_index": index,
                "calls": len(sizes), "first_call": call, **({"places": places[:count]} if places else {}),
            })  # fmt: skip
            call, places = call + len(sizes), places[count:]
        return told

    def following(self, parts: tuple[tuple[int, ...], ...], places: Sequence[str] = ()) -> Departure:
        """Return the one behind it, with these parts; `places`: those of others that they fill."""
        calls = sum(map(len, self.parts))
        start = self.start + len(self.parts)
        return Departure(self.number + 1, start, self.first_call + calls, parts, tuple(places))


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


def places_of(batch_id: str, departures: Iterable[Departure]) -> list[str]:
    """Return the keys of the places that departures have of their own: as many as a batch has items.

    >>> places_of("b", waves("skill", [2, 1]))
    ['b:0:0', 'b:0:1', 'b:0:2']
    """
    parts = [one for departure in departures for one in departure.subtasks(batch_id)]
    return [item_key(one["subtask_id"], place) for one in parts for place in range(one["count"])]


def top_up(request: DetailsRequest, missing: Sequence[str], last: Departure) -> Departure:
    """Return the departure after `last` that fills places which stayed empty.

    >>> from headrace.apps.details.request import parse_request
    >>> missing = [f"b:0:{place}" for place in range(12)]
    >>> made = top_up(parse_request({"type": "skill", "count": 12}), missing, Departure(1, 0, 0, ((12,),)))
    >>> made.parts, [len(one["places"]) for one in made.subtasks("b")]
    (((4, 4), (4,)), [8, 4])
    """
    size, count = kind_of(request.type).size, len(missing)
    largest = max(SHORT, size if count > SHORT * WAVE else SHORT)
    parts = joined_parts(even_sizes(count, largest)[:WAVE], size)
    return last.following(parts, missing[: sum(map(sum, parts))])
