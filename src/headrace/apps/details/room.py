"""When the quota of a model lets calls begin."""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import accumulate

from headrace.model.quota import Dimension, Pool

#: The part of what a quota lets through at once that one batch is taken to find there.
READY = 0.5


@dataclass(frozen=True, slots=True)
class Need:
    """What one call takes."""

    #: Of the prompt, and of the answer.
    input_tokens: float
    output_tokens: float
    #: From its beginning to its end.
    seconds: float

    def units(self, dimension: str) -> float:
        """What it takes of a dimension; of one that is not of tokens, one call."""
        amounts = {
            str(Dimension.TOKENS): self.input_tokens + self.output_tokens,
            str(Dimension.INPUT_TOKENS): self.input_tokens,
            str(Dimension.OUTPUT_TOKENS): self.output_tokens,
        }
        return amounts.get(dimension, 1.0)


@dataclass(frozen=True, slots=True)
class Starts:
    """When calls begin, in seconds from now, in their order."""

    seconds: tuple[float, ...]
    #: The limit that makes the last one wait; "": it does not.
    limit: str = ""


@dataclass(frozen=True, slots=True)
class Room:
    """What a quota allows. The default: everything."""

    #: How the quota is called where it binds.
    name: str = "the model"
    #: Units per second, by dimension: those of `Dimension`, or another name for calls.
    flows: Mapping[str, float] = field(default_factory=dict)
    #: Most calls in flight.
    in_flight: int | None = None
    #: How much of a flow may be used at once after a pause.
    burst_seconds: float = 1.0
    #: Calls that wait for the quota now; they are taken to be like those that are planned.
    waiting: int = 0
    #: Calls in flight now.
    running: int = 0
    #: For so many seconds nothing passes, by the provider's word.
    closed: float = 0.0

    def starts(self, needs: Sequence[Need]) -> Starts:
        """Return when these calls begin, if all are asked for now.

        >>> Room("openai:gpt-x", {"requests": 10.0}).starts([Need(400, 60, 1.0)] * 25).limit
        '600 requests per minute of openai:gpt-x'
        """
        found = [(self._flowing(name, flow, needs), self._words(name)) for name, flow in self.flows.items() if flow > 0]
        if self.in_flight is not None:
            found.append((self._in_turns(self.in_flight, needs), f"{self.in_flight:,} calls in flight of {self.name}"))
        if self.closed > 0:
            found.append(([self.closed] * len(needs), f"{self.name} lets nothing pass for {self.closed:.0f} s"))
        if not found:
            return Starts((0.0,) * len(needs))
        seconds = tuple(map(max, zip(*(times for times, _ in found), strict=True)))
        slowest, words = max(found, key=lambda each: each[0][-1])
        return Starts(seconds, words if slowest[-1] > 0 else "")

    def _flowing(self, name: str, flow: float, needs: Sequence[Need]) -> list[float]:
        amounts = [need.units(name) for need in needs]
        before = self.waiting * sum(amounts) / len(amounts) - READY * self.burst_seconds * flow
        return [max(0.0, (before + amount) / flow) for amount in accumulate(amounts)]

    def _in_turns(self, most: int, needs: Sequence[Need]) -> list[float]:
        """Those in flight end evenly over the time of one call; whoever waits goes first."""
        usual = sum(need.seconds for need in needs) / len(needs)
        running = min(self.running, most)
        slots = [0.0] * (most - running) + [(place + 1) / running * usual for place in range(running)]
        heapq.heapify(slots)
        queued = max(0, self.waiting - (most - running)) * usual / most
        times = []
        for need in needs:
            begins = heapq.heappop(slots)
            times.append(begins + queued)
            heapq.heappush(slots, begins + need.seconds)
        return times

    def _words(self, name: str) -> str:
        unit = name.replace("_", " ") if name in set(Dimension) else "requests (learnt)"
        return f"{60 * self.flows[name]:,.0f} {unit} per minute of {self.name}"


def room_of(
    pool: Pool, *, flows: Mapping[str, float] | None = None, waiting: int = 0, running: int = 0, closed: float = 0.0
) -> Room:
    """Return the room of a pool by its limits; `flows`: units per second that are known better, by what was learnt.

    >>> from headrace.model.quota import PoolLimits
    >>> room_of(Pool("openai:gpt-x", PoolLimits(requests_per_minute=600, concurrency=8))).in_flight
    8
    """
    limits = pool.limits
    known = {str(name): flow for name, flow in limits.flows.items()} | {str(k): v for k, v in (flows or {}).items()}
    return Room(pool.name, known, limits.concurrency, limits.burst.total_seconds(), waiting, running, closed)
