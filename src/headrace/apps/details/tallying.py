"""Adding up what became of the parts of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headrace.apps.details.pace import Measured, Pace, learn_all
from headrace.apps.details.request import DetailsRequest
from headrace.apps.details.writing import SUMS, read_measured


@dataclass
class Tally:
    """What the parts of a batch came to."""

    sums: dict[str, int] = field(default_factory=lambda: dict.fromkeys(SUMS, 0))
    dead: int = 0
    tasks: list[dict[str, Any]] = field(default_factory=list)
    measured: list[Measured] = field(default_factory=list)
    base: list[Measured] = field(default_factory=list)
    #: Parts that told what they wrote.
    told: set[str] = field(default_factory=set)

    def add(self, told: Mapping[str, Any]) -> None:
        """Add a part that was written, once: the log of events may tell it again."""
        if told["task_id"] in self.told:
            return
        self.told.add(told["task_id"])
        self.add_sums(told)
        self.tasks.append({"status": "completed", "seconds": told.get("seconds", 0.0)})
        self.measured += read_measured(told)
        self.base += read_measured(told, "base")

    def add_sums(self, told: Mapping[str, Any]) -> None:
        """Add what something cost, whatever came of it."""
        for name in SUMS:
            self.sums[name] += int(told.get(name, 0))

    def add_silent(self, answered: Iterable[bool]) -> None:
        """Add parts of which some told nothing in time: those whose items are all there are done all the same."""
        for done in answered:
            if done:
                self.tasks.append({"status": "completed", "seconds": None})
            else:
                self.add_dead()

    def add_dead(self, count: int = 1) -> None:
        """Add parts that became dead letters, or never answered."""
        self.dead += count
        self.tasks += [{"status": "dead", "seconds": None}] * count

    def ending(
        self, request: DetailsRequest, delivered: int, seconds: float, first: float | None, status: str = ""
    ) -> dict[str, Any]:
        """Return what the last entry of the feed says; `status`: how it ended, where that is not told by its items."""
        status = status or ("completed" if delivered >= request.count else "partial" if delivered else "failed")
        return {
            "status": status, "delivered": delivered, "count": request.count, "seconds": seconds,
            "first_response_seconds": first,
            **self.sums, "tokens": self.sums["input_tokens"] + self.sums["output_tokens"], "dead_letters": self.dead,
        }  # fmt: skip

    def figures(self, request: DetailsRequest, ending: Mapping[str, Any]) -> dict[str, Any]:
        """Return the entry of the feed of ended batches."""
        return {
            **{name: value for name, value in ending.items() if name != "tokens"}, "type": request.type,
            "priority": request.priority, "tasks": self.tasks,
            "pace": learn_all(Pace(), self.measured).to_json(),
            "base": learn_all(Pace(), self.base).to_json(),
        }  # fmt: skip
