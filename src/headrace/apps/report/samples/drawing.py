"""Draws what varies in the samples: the same for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random
from typing import Any, TypeVar

from headrace.apps.report.samples.subjects import FAILURES, Failure

T = TypeVar("T")
_START = datetime(2026, 3, 2, 9, 0)


class Draw:
    """A source of choices."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)  # noqa: S311 (samples, no secrets)

    def chance(self, share: float) -> bool:
        """Return True for a share of the calls."""
        return self._random.random() < share

    def one(self, choices: Sequence[T]) -> T:
        """Return one of the choices."""
        return self._random.choice(choices)

    def weighted(self, choices: dict[str, int]) -> str:
        """Return one of the choices, by weight."""
        return self._random.choices(list(choices), list(choices.values()))[0]

    def number(self, least: int, most: int) -> int:
        """Return a number."""
        return self._random.randint(least, most)

    def moment(self) -> datetime:
        """Return a time of the two weeks in which the tests ran."""
        return _START + timedelta(days=self.number(0, 13), minutes=self.number(0, 500))

    def failure(self, subject: int) -> Failure:
        """Return a way in which a module fails."""
        return self.one([failure for failure in FAILURES if failure.subject == subject])

    def filling(self) -> dict[str, Any]:
        """Return what stands in the places of a failure's texts."""
        return {
            "order": f"SO{self.number(10_000, 99_999)}",
            "ms": self.number(1_000, 60_000),
            "amount": f"{self.number(100, 99_999) / 100:.2f}",
            "build": f"{self._random.getrandbits(32):08x}",
            "n": self.number(2, 900),
            "n2": self.number(2, 90),
            "phone": f"138{self.number(10_000_000, 99_999_999)}",
        }
