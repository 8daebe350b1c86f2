"""The targets as data: which figure, over which, how much is wanted, and whether it was met."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from headrace.bench.figures import Spread
from headrace.bench.results import Results

Figure = tuple[str, str, str]


class Level(StrEnum):
    """How much a target is wanted."""

    REQUIRED = "required"
    GOAL = "goal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """`of`, or `of / to` where `to` is given, is at least (or at most) `bound`."""

    name: str
    of: Figure
    bound: float
    to: Figure | None = None
    at_least: bool = True
    level: Level = Level.REQUIRED
    unit: str = ""

    @property
    def formula(self) -> str:
        """The target as a person writes it."""
        shown = _shown(self.of) if self.to is None else f"{_shown(self.of)} / {_shown(self.to)}"
        return f"{shown} {'≥' if self.at_least else '≤'} {self.bound:,g}{f' {self.unit}' if self.unit else ''}"

    def value(self, results: Results) -> Spread | None:
        """Return the figure or ratio of a run, or None when it was not measured."""
        if self.to is not None:
            return results.ratio(self.of, self.to)
        return Spread.of(list(results.values(*self.of).values()))

    def met(self, value: Spread) -> bool:
        """Whether the median meets the bound."""
        return value.median >= self.bound if self.at_least else value.median <= self.bound

    def to_json(self, results: Results) -> dict[str, Any]:
        """Return it as the report holds it."""
        value = self.value(results)
        return {
            "name": self.name,
            "formula": self.formula,
            "level": self.level.value,
            "value": None if value is None else value.to_json(),
            "met": None if value is None else self.met(value),
        }


def _shown(figure: Figure) -> str:
    return f"{figure[1]} {figure[0]}" + (f" {figure[2]}" if figure[2] else "")


TARGETS: tuple[Target, ...] = (
    Target(
        name="our statements against the delete-only loop", bound=0.8,
        of=("drain", "raw-ours", ""), to=("drain", "raw-delete", ""),
    ),
    Target(
        name="the worker against our statements", bound=0.5,
        of=("drain", "headrace", ""), to=("drain", "raw-ours", ""),
    ),
    Target(
        name="the worker against our statements", bound=0.65, level=Level.GOAL,
        of=("drain", "headrace", ""), to=("drain", "raw-ours", ""),
    ),
    Target(
        name="the worker against pgqueuer", bound=1.15,
        of=("drain", "headrace", ""), to=("drain", "pgqueuer", ""),
    ),
    Target(
        name="the worker against pgqueuer, deep", bound=1.15,
        of=("drain-deep", "headrace", ""), to=("drain-deep", "pgqueuer", ""),
    ),
    Target(
        name="deep against shallow", bound=0.85,
        of=("drain-deep", "headrace", ""), to=("drain", "headrace", ""),
    ),
    Target(
        name="graphile-worker at 55,000 waiting (its own figure of a quiet machine)", bound=19_800, unit="jobs/s",
        level=Level.GOAL, of=("drain-deep", "headrace", ""),
    ),
)  # fmt: skip
