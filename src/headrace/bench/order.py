"""What a child process is told to measure, and what it answers: one line of JSON each way."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

#: Begins the line of standard output that holds the answer; peers print what they like before it.
ANSWER = "headrace-bench-answer "


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One measurement of one contender in a database of its own."""

    contender: str
    workload: str
    #: The address of an empty database, with its password: handed over by standard input, never on a command line.
    dsn: str
    #: The address of an empty database of a Redis server, for those that need one.
    redis: str = ""
    jobs: int = 0
    seconds: float = 0.0
    #: The server's process (the postmaster, or the Redis server), where its processor time can be read.
    server_pid: int | None = None
    #: The folder whose `headrace` the worker imports; empty: the same as the child's.
    source: str = ""

    def to_json(self) -> str:
        """Return the order as one line."""
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Order:
        """Return the order of a line."""
        return cls(**json.loads(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came of an order: figures, or why there are none."""

    figures: dict[str, float] = field(default_factory=dict)
    #: Why it could not be measured; empty when it was.
    failed: str = ""
    #: Whether the contender is not installed or does not know the workload.
    missing: str = ""
    #: Seconds of the whole measurement, with what came before and after the figures.
    took: float = 0.0

    def to_line(self) -> str:
        """Return the answer as the line that ends the child's output."""
        return ANSWER + json.dumps(asdict(self))

    @classmethod
    def from_output(cls, text: str) -> Answer | None:
        """Return the answer in what a child wrote, or None when it holds none."""
        lines = [line for line in text.splitlines() if line.startswith(ANSWER)]
        return cls(**json.loads(lines[-1].removeprefix(ANSWER))) if lines else None

    def to_json(self) -> dict[str, Any]:
        """Return what is worth keeping."""
        kept = {name: value for name, value in asdict(self).items() if value}
        return {**kept, "took": round(self.took, 2)}
