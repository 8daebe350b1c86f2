"""Medians with their range, and ratios taken within each round: speeds drift between rounds, ratios much less."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """A median of rounds and how far they lie apart."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread | None:
        """Return the spread of values, or None of none.

        >>> Spread.of([3.0, 1.0, 2.0])
        Spread(median=2.0, least=1.0, most=3.0)
        """
        return cls(statistics.median(values), min(values), max(values)) if values else None

    def to_json(self) -> dict[str, float]:
        """Return it as the report holds it."""
        return {"median": _short(self.median), "min": _short(self.least), "max": _short(self.most)}


def ratio(of: Mapping[int, float], to: Mapping[int, float]) -> Spread | None:
    """Return the spread of the ratios within each round that has both, by round number.

    >>> ratio({1: 2.0, 2: 6.0, 3: 1.0}, {1: 4.0, 2: 6.0})
    Spread(median=0.75, least=0.5, most=1.0)
    """
    return Spread.of([of[round_] / to[round_] for round_ in sorted(of.keys() & to.keys()) if to[round_]])


def _short(value: float) -> float:
    """Return a value to four digits: more of them would be noise."""
    return float(f"{value:.4g}") if abs(value) < 1000 else round(value)
