"""How fast a model writes details, learnt from calls that were measured."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

#: How much of a new measurement is taken over, where it is worse than what was thought and where it is better: the
#: figures settle near the slower quarter of calls, since a batch is as late as the latest of its calls.
WORSE, BETTER = 0.3, 0.1
#: The same of a base pace, the model's own: what made it worse for a while is hardly heeded.
BASE = (0.05, 0.3)
#: Answers of fewer tokens tell nothing of their rate.
TELLING_TOKENS = 20
#: Measurements beyond these are mistakes of a clock or of a count.
_MOST_SECONDS, _MOST_RATE, _MOST_PER_ITEM = 120.0, 20_000.0, 10_000.0
_LEAST_RATE, _LEAST_PER_ITEM = 0.1, 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """One call that was answered."""

    first_token_seconds: float
    #: From the first token to the last.
    writing_seconds: float
    output_tokens: int
    items: int


@dataclass(frozen=True, slots=True)
class Pace:
    """What a call is thought to take. Before anything was measured it is thought to be slow."""

    first_token_seconds: float = 1.0
    tokens_per_second: float = 50.0
    tokens_per_item: float = 60.0
    #: Calls it was learnt from.
    samples: int = 0

    @property
    def item_seconds(self) -> float:
        """The time one item takes to be written."""
        return self.tokens_per_item / self.tokens_per_second

    def call_seconds(self, items: int) -> float:
        """The time from sending a call until so many of its items are there.

        >>> round(Pace(0.4, 100, 60, samples=9).call_seconds(5), 3)
        3.4
        """
        return self.first_token_seconds + items * self.item_seconds

    def learn(self, measured: Measured, worse: float = WORSE, better: float = BETTER) -> Pace:
        """Return the pace with one more call known; `worse` and `better`: how much of it is taken over.

        >>> Pace().learn(Measured(0.4, 3.0, 300, 5))
        Pace(first_token_seconds=0.4, tokens_per_second=100.0, tokens_per_item=60.0, samples=1)
        """

        def moved(old: float, new: float) -> float:
            return new if not self.samples else old + (worse if new > old else better) * (new - old)

        first = moved(self.first_token_seconds, _within(measured.first_token_seconds, 0.0, _MOST_SECONDS))
        rate, per_item = self.tokens_per_second, self.tokens_per_item
        if measured.output_tokens >= TELLING_TOKENS and measured.writing_seconds > 0:
            told = _within(measured.output_tokens / measured.writing_seconds, _LEAST_RATE, _MOST_RATE)
            # Seconds per token, so that slower is the larger number here too.
            rate = 1 / moved(1 / rate, 1 / told)
        if measured.items > 0 and measured.output_tokens > 0:
            told = _within(measured.output_tokens / measured.items, _LEAST_PER_ITEM, _MOST_PER_ITEM)
            per_item = moved(per_item, told)
        return Pace(first, rate, per_item, self.samples + 1)

    def to_json(self) -> dict[str, Any]:
        """The pace as `read_pace` reads it."""
        return asdict(self)

    def not_above(self, other: Pace) -> Pace:
        """Return what is better of two paces, figure by figure.

        >>> Pace(0.4, 50, 60, 3).not_above(Pace(0.5, 100, 60, 9))
        Pace(first_token_seconds=0.4, tokens_per_second=100, tokens_per_item=60, samples=9)
        """
        return Pace(
            min(self.first_token_seconds, other.first_token_seconds),
            max(self.tokens_per_second, other.tokens_per_second),
            min(self.tokens_per_item, other.tokens_per_item),
            max(self.samples, other.samples),
        )


def learn_all(pace: Pace, calls: Iterable[Measured]) -> Pace:
    """Return the pace with these calls known, in their order."""
    for call in calls:
        pace = pace.learn(call)
    return pace


def read_pace(data: object) -> Pace:
    """Return a pace that was stored; what is none tells nothing, and the slow one holds.

    >>> read_pace(Pace(0.4, 100.0, 60.0, 3).to_json()).samples, read_pace({"samples": "x"}).samples
    (3, 0)
    """
    if not isinstance(data, Mapping):
        return Pace()
    names = ("first_token_seconds", "tokens_per_second", "tokens_per_item", "samples")
    values: list[Any] = [data.get(name) for name in names]
    if not all(_is_number(value) for value in values):
        return Pace()
    first, rate, per_item, samples = map(float, values)
    return Pace(
        _within(first, 0.0, _MOST_SECONDS),
        _within(rate, _LEAST_RATE, _MOST_RATE),
        _within(per_item, _LEAST_PER_ITEM, _MOST_PER_ITEM),
        max(0, int(samples)),
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf


def _within(value: float, least: float, most: float) -> float:
    return min(max(value, least), most)
