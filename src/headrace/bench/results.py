"""What a run has found out: one result per workload and contender, with all its rounds."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from headrace.bench.catalogue import WORKLOADS
from headrace.bench.figures import Spread, ratio
from headrace.bench.order import Answer


@dataclass(slots=True)
class Result:
    """One contender at one workload."""

    workload: str
    contender: str
    jobs: int
    #: by round number
    answers: dict[int, Answer] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """`ok`, `failed: why`, `not installed` or why it does not apply; the worst of the rounds."""
        for answer in self.answers.values():
            if answer.failed or answer.missing:
                return f"failed: {answer.failed}" if answer.failed else answer.missing
        return "ok" if self.answers else "not measured"

    def values(self, figure: str = "") -> dict[int, float]:
        """Return a figure by round; by default the one the workload is compared by."""
        name = figure or WORKLOADS[self.workload].figures[0].key
        return {turn: answer.figures[name] for turn, answer in self.answers.items() if name in answer.figures}

    def spread(self, figure: str = "") -> Spread | None:
        """Return median and range of a figure."""
        return Spread.of(list(self.values(figure).values()))

    def to_json(self) -> dict[str, Any]:
        """Return it as the report holds it."""
        names = dict.fromkeys(name for answer in self.answers.values() for name in answer.figures)
        spreads = {name: self.spread(name) for name in names}
        return {
            "workload": self.workload,
            "contender": self.contender,
            "status": self.status,
            "jobs": self.jobs,
            "figures": {name: spread.to_json() for name, spread in spreads.items() if spread is not None},
            "rounds": {str(turn): answer.to_json() for turn, answer in sorted(self.answers.items())},
        }


class Results:
    """All results of a run."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str], Result] = {}

    def add(self, result: Result, turn: int, answer: Answer) -> None:
        """Note the answer of one round."""
        self._results.setdefault((result.workload, result.contender), result).answers[turn] = answer

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def find(self, workload: str, contender: str) -> Result | None:
        """Return a result, if it was measured."""
        return self._results.get((workload, contender))

    def values(self, workload: str, contender: str, figure: str = "") -> dict[int, float]:
        """Return a figure by round; empty when it was not measured."""
        result = self.find(workload, contender)
        return {} if result is None else result.values(figure)

    def ratio(self, of: tuple[str, str, str], to: tuple[str, str, str]) -> Spread | None:
        """Return the ratio of two figures (workload, contender, figure), taken within each round."""
        return ratio(self.values(*of), self.values(*to))
