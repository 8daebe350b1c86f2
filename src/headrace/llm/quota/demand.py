"""How much of a pool this process has used lately, and how long answers are."""

from __future__ import annotations

import math
from collections.abc import Mapping

#: How soon the past is forgotten.
MEMORY_SECONDS = 0.5
#: How many answers tell what is usual, and how many are remembered.
ENOUGH_ANSWERS, MEMORY_ANSWERS = 10, 200


class Demand:
    """Units per second by dimension, smoothed; calls; tokens of answers."""

    def __init__(self) -> None:
        self._rates: dict[str, float] = {}
        self._calls = self._at = 0.0
        self._outputs = 0
        self._output = 0.0

    def note(self, units: Mapping[str, float], now: float) -> None:
        """Count a call that was let pass."""
        fade = self._fade(now)
        self._rates = {key: self._rates.get(key, 0.0) * fade + amount / MEMORY_SECONDS for key, amount in units.items()}
        self._calls, self._at = self._calls * fade + 1 / MEMORY_SECONDS, now

    def expected(self, seconds: float, now: float) -> Mapping[str, float]:
        """Return what the next `seconds` will need; nothing where that is less than one call."""
        fade = self._fade(now)
        if self._calls * fade * seconds < 1:
            return {}
        return {key: rate * fade * seconds for key, rate in self._rates.items()}

    def answered(self, output_tokens: int) -> None:
        """Count an answer."""
        self._outputs = min(self._outputs + 1, MEMORY_ANSWERS)
        self._output += (output_tokens - self._output) / self._outputs

    @property
    def output(self) -> float | None:
        """Tokens that answers usually have; None: too few are known."""
        return self._output if self._outputs >= ENOUGH_ANSWERS else None

    def _fade(self, now: float) -> float:
        return math.exp(-max(0.0, now - self._at) / MEMORY_SECONDS)
