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
        name="our statements against the delete-only loop", bound=0.8, unit="×", of=("statements", "raw-ours", "share"),
    ),
    Target(
        name="our statements against the delete-only loop, deep", bound=0.8, unit="×",
        of=("statements-deep", "raw-ours", "share"),
    ),
    Target(
        name="our statements against the loop without fences", bound=0.8, level=Level.GOAL,
        of=("drain", "raw-ours", ""), to=("drain", "raw-plain", ""),
    ),
    Target(
        name="the worker against our statements", bound=0.5,
        of=("drain", "headrace-400", ""), to=("drain", "raw-ours", ""),
    ),
    Target(
        name="the worker against our statements", bound=0.65, level=Level.GOAL,
        of=("drain", "headrace-400", ""), to=("drain", "raw-ours", ""),
    ),
    Target(
        name="the worker against pgqueuer", bound=1.15,
        of=("drain", "headrace-400", ""), to=("drain", "pgqueuer", ""),
    ),
    Target(
        name="the worker against pgqueuer, deep", bound=1.15,
        of=("drain-deep", "headrace-400", ""), to=("drain-deep", "pgqueuer", ""),
    ),
    Target(
        name="deep against shallow", bound=0.85,
        of=("drain-deep", "headrace-400", ""), to=("drain", "headrace-400", ""),
    ),
    Target(
        name="graphile-worker at 55,000 waiting (its own figure of a quiet machine)", bound=19_800, unit="jobs/s",
        level=Level.GOAL, of=("drain-deep", "headrace-400", ""),
    ),
    Target(name="a plain queue beside a gated one", bound=0.95, of=("gated", "headrace", "beside")),
    Target(
        name="50,000 jobs behind one key slow other keys", bound=1.3, at_least=False,
        of=("gated", "headrace", "behind"),
    ),
    Target(
        name="the same on the Redis store", bound=1.3, at_least=False, of=("gated", "headrace-redis", "behind"),
    ),
    Target(
        name="the Redis store against taskiq", bound=2,
        of=("drain", "headrace-redis-100", ""), to=("drain", "taskiq", ""),
    ),
    Target(
        name="the Redis store against BullMQ", bound=0.5,
        of=("drain", "headrace-redis-100", ""), to=("drain", "bullmq", ""),
    ),
    Target(
        name="pick-up on the Redis store against taskiq, median", bound=1.5, at_least=False,
        of=("latency", "headrace-redis", "p50"), to=("latency", "taskiq", "p50"),
    ),
    Target(
        name="pick-up on the Redis store against BullMQ, median", bound=1.5, at_least=False,
        of=("latency", "headrace-redis", "p50"), to=("latency", "bullmq", "p50"),
    ),
    Target(
        name="bulk enqueue against the raw multi-row insert", bound=0.4,
        of=("enqueue", "headrace", "many"), to=("enqueue", "raw-insert", "many"),
    ),
    Target(name="bulk enqueue", bound=60_000, unit="jobs/s", of=("enqueue", "headrace", "many")),
    Target(
        name="enqueue one by one against the raw single insert", bound=0.7,
        of=("enqueue", "headrace", "one"), to=("enqueue", "raw-insert", "one"),
    ),
    Target(
        name="64 callers against the raw single insert", bound=8,
        of=("enqueue", "headrace", "callers"), to=("enqueue", "raw-insert", "one"),
    ),
    Target(name="pick-up, median", bound=3, unit="ms", at_least=False, of=("latency", "headrace", "p50")),
    Target(name="pick-up, 99 of 100", bound=10, unit="ms", at_least=False, of=("latency", "headrace", "p99")),
    Target(
        name="1 → 1,000 → 1", bound=0.25, unit="s", at_least=False, of=("scatter", "headrace", "seconds"),
    ),
    Target(name="idle worker", bound=45, unit="MiB", at_least=False, of=("memory", "headrace", "idle_rss")),
    Target(
        name="worker with 10,000 waiting", bound=3, unit="MiB", at_least=False, of=("memory", "headrace", "growth"),
    ),
    Target(
        name="first job after start", bound=0.5, unit="s", at_least=False, of=("memory", "headrace", "first_job"),
    ),
    *(
        target
        for workload in ("kill", "kill-apart")
        for target in (
            Target(name="lost at a kill", bound=0, unit="jobs", at_least=False, of=(workload, "headrace", "lost")),
            Target(
                name="run again beyond what was finished and unrecorded at the kill", bound=0, unit="jobs",
                at_least=False, of=(workload, "headrace", "again_beyond_unrecorded"),
            ),
            Target(
                name="orphans run again", bound=15, unit="s", at_least=False, of=(workload, "headrace", "seconds"),
            ),
        )
    ),
)  # fmt: skip
