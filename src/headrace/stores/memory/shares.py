"""The shares of a queue: virtual time, and the finish tag and weight of each fair key."""

from __future__ import annotations

from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from headrace.model.fairness import HIGH_TIME, finish_tag, rest_time, start_tag

#: Jobs without a fair key are one more share, of this weight.
DEFAULT_WEIGHT = 1.0


@dataclass(slots=True)
class Shares:
    """See `model/fairness.py`. A fair key without a tag starts at the virtual time."""

    virtual: float = 0.0
    finish: dict[str | None, float] = field(default_factory=dict)
    weights: dict[str, float] = field(default_factory=dict)

    def start_tag(self, fair_key: str | None) -> float:
        """Return the start tag of the next job of a fair key."""
        return start_tag(self.virtual, self.finish.get(fair_key))

    def weight(self, fair_key: str | None) -> float:
        """Return the weight of a fair key."""
        return DEFAULT_WEIGHT if fair_key is None else self.weights.get(fair_key, DEFAULT_WEIGHT)

    def weigh(self, fair_key: str, weight: float) -> None:
        """Set the weight of a fair key; the default one is not worth a row."""
        if weight == DEFAULT_WEIGHT:
            self.weights.pop(fair_key, None)
        else:
            self.weights[fair_key] = weight

    def started(self, fair_key: str | None, cost: float) -> None:
        """Move the tag of a fair key, and the virtual time, past a job that starts now."""
        self.virtual = self.start_tag(fair_key)
        self.finish[fair_key] = finish_tag(self.virtual, cost, self.weight(fair_key))

    def lower(self) -> None:
        """Take a high virtual time off all tags: as large numbers they would soon be all the same."""
        if self.virtual >= HIGH_TIME:
            self.finish = {key: max(0.0, tag - self.virtual) for key, tag in self.finish.items()}
            self.virtual = 0.0

    def rest(self) -> None:
        """Drop all tags, where nothing waits any more."""
        self.virtual = rest_time(self.virtual, self.finish.values())
        self.finish.clear()

    def forget(self, waiting: Set[str | None]) -> None:
        """Drop the tags that say nothing any more: of fair keys that wait for nothing and would start at once."""
        gone = [key for key, tag in self.finish.items() if tag <= self.virtual and key not in waiting]
        for key in gone:
            del self.finish[key]

    def named(self) -> Iterator[tuple[str, float, float]]:
        """Return fair key, weight and finish tag of the fair keys that have a tag or a weight of their own, by key."""
        for key in sorted({*self.weights, *filter(None, self.finish)}):
            yield key, self.weight(key), self.start_tag(key)
