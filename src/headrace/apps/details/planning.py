"""How a batch is cut into calls so that it keeps its time: the largest sub-batches that do.

Fewer calls cost fewer tokens, and more calls side by side are sooner done. Both times are counted from the request:
what the system takes before and after the call, the wait for the quota, the first token, then item by item.

Under load all calls are slower. To answer that with more calls, still smaller, would make more load: a plan has never
many more calls than the promise needs at the model's own pace. What is foretold is the pace of now all the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from math import ceil

from headrace.apps.details.kinds import base_sizes, even_parts
from headrace.apps.details.pace import Pace
from headrace.apps.details.request import DetailsRequest
from headrace.apps.details.room import Need, Room

#: Requests of more carry no promise of time.
MOST_PROMISED = 50
#: Sub-batches of a larger request that are out at once: bulk never floods what carries it.
WAVE = 16
#: Smaller sub-batches are made only where the promise is kept by it: a crowd of tiny calls slows all others.
LEAST_UNPROMISED = 4
#: Without a promise fewer calls are preferred, where that takes so many times as long at most.
NEAR = 1.1
#: So many times the calls that the promise needs of a model that nothing slows are made at most.
MOST_MORE = 1.5
#: So many more items than the first response needs are asked for at first: some are duplicates.
SPARE = 0.1
#: What is said of the pace of a model that no call was measured of.
ASSUMED = "assumed: nothing was measured yet"
#: About what a prompt with its schema takes.
PROMPT_TOKENS = 400


@dataclass(frozen=True, slots=True)
class Terms:
    """What is promised, in seconds from the request."""

    deadline: float = 5.0
    first: float = 2.0
    #: What everything but the call takes: ledger, bus, agents, the feed. Nineteen of twenty batches take less, with
    #: eight of them at once on two cores: promises are kept by the late ones too.
    overhead: float = 0.4


@dataclass(frozen=True, slots=True)
class Plan:
    """How a request is cut."""

    #: Items of each sub-batch.
    sizes: tuple[int, ...]
    #: Until all items are there, without a top-up.
    expected_seconds: float
    #: Until the first response is.
    first_expected_seconds: float
    #: Whether both times are promised; there is room for one top-up then.
    promised: bool
    #: The times, and why they are not promised.
    detail: str
    #: Whether what it says of the model was measured, where that decides; else a slow model is assumed.
    measured: bool = True
    #: When each call may begin and has ended, in seconds from the request.
    calls: tuple[tuple[float, float], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to cut a request, and what it takes."""

    sizes: tuple[int, ...]
    first: float
    all: float
    #: The limit that costs time; "": none.
    limit: str
    #: When its calls begin.
    begins: tuple[float, ...]


def make_plan(
    request: DetailsRequest, pace: Pace, room: Room | None = None, terms: Terms | None = None,
    base: Pace | None = None,
) -> Plan:  # fmt: skip
    """Return the plan of a request, by the pace that was measured and the room in the quota.

    `base`: the pace of the model that nothing slows; None: the same.

    >>> from headrace.apps.details.request import parse_request
    >>> plan = make_plan(parse_request({"type": "item", "count": 50}), Pace(0.4, 100.0, 60.0, samples=9))
    >>> len(plan.sizes), plan.sizes[0], plan.promised, plan.detail
    (10, 5, True, 'expected 3.8 s, first response 2.0 s')
    """
    return _Planning(request, pace, room or Room(), terms or Terms(), base or pace).plan()


@dataclass(frozen=True, slots=True)
class _Planning:
    request: DetailsRequest
    pace: Pace
    room: Room
    terms: Terms
    base: Pace

    def plan(self) -> Plan:
        if self.request.count > MOST_PROMISED:
            return self._bulk()
        unhindered = replace(self, pace=self.base)._kept()
        most = None if unhindered is None else ceil(MOST_MORE * len(unhindered.sizes))
        kept = self._kept(most)
        if kept is not None:
            return self._told(kept, True, "")
        if unhindered is not None:
            # More calls would slow all of them: what would be enough without the load is made.
            way = self._way(unhindered.sizes)
            return self._told(way, False, self._why(way))
        ways = list(self._ways())
        ways = ways[:1] + [way for way in ways[1:] if max(way.sizes) >= LEAST_UNPROMISED]
        soonest = min(way.all for way in ways)
        best = next(way for way in ways if way.all <= NEAR * soonest)
        return self._told(best, False, self._why(best))

    def _kept(self, most: int | None = None) -> _Way | None:
        """The way with the fewest calls that keeps both times; None: there is none."""
        return next((way for way in self._ways(most) if self._keeps(way)), None)

    def _ways(self, most: int | None = None) -> Iterator[_Way]:
        """All ways to cut the request into `most` calls or fewer, those with fewer calls first."""
        count = self.request.count
        fewest = len(base_sizes(self.request.type, count))
        for calls in range(fewest, max(fewest, min(count, most or count)) + 1):
            yield self._way(even_parts(count, calls))

    def _keeps(self, way: _Way) -> bool:
        reserve = self.pace.call_seconds(1)
        return way.first <= self.terms.first and way.all + reserve <= self.terms.deadline

    def _way(self, sizes: tuple[int, ...]) -> _Way:
        starts = self.room.starts([self._need(size) for size in sizes])
        begun = list(zip(sizes, starts.seconds, strict=True))
        times = sorted(at + self.pace.call_seconds(item + 1) for size, at in begun for item in range(size))
        overhead = self.terms.overhead
        return _Way(sizes, overhead + times[self._needed() - 1], overhead + times[-1], starts.limit, starts.seconds)

    def _need(self, size: int) -> Need:
        return Need(PROMPT_TOKENS, self.pace.tokens_per_item * size, self.pace.call_seconds(size))

    def _needed(self) -> int:
        first = self.request.first_count
        return min(self.request.count, first + ceil(SPARE * first))

    def _bulk(self) -> Plan:
        """A large request goes out in waves: a call begins when another ends."""
        in_flight = WAVE if self.room.in_flight is None else min(WAVE, self.room.in_flight)
        waves = replace(self, room=replace(self.room, in_flight=in_flight))
        way = waves._way(base_sizes(self.request.type, self.request.count))
        why = f"more than {MOST_PROMISED} items carry no promise of time"
        return self._told(way, False, why if in_flight == WAVE and "in flight" in way.limit else way.limit or why)

    def _why(self, way: _Way) -> str:
        """The limit of the quota without which the promise would be kept; else the model, and what it waits for."""
        free = replace(self, room=Room())
        kept = free._kept()
        if kept is not None and (limit := self._way(kept.sizes).limit):
            return limit
        waits = way.limit and way.all > NEAR * free._way(way.sizes).all
        return f"{way.limit}, and {self._in_words()}" if waits else self._in_words()

    def _in_words(self) -> str:
        pace = self.pace
        how = "measured" if pace.samples else ASSUMED
        return (
            f"{pace.first_token_seconds:.1f} s to the first token and {pace.tokens_per_second:.0f} tokens per second "
            f"({how}), {pace.tokens_per_item:.0f} tokens per item"
        )

    def _told(self, way: _Way, promised: bool, why: str) -> Plan:
        total, first = round(way.all, 3), round(way.first, 3)
        words = f"expected {total:.1f} s"
        if promised or total <= self.terms.deadline:
            words = f"{words}, first response {first:.1f} s"
        ends = zip(way.begins, way.sizes, strict=True)
        calls = tuple((begin, begin + self.pace.call_seconds(size)) for begin, size in ends)
        told = f"{words}: {why}" if why else words
        return Plan(way.sizes, total, first, promised, told, measured=ASSUMED not in why, calls=calls)
