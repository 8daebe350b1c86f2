"""What a run says: the seed, how far it came, which invariant broke, the last lines before, and how to see it again."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

REPLAY = "python -m headrace.testing.simulation --seed {seed} --trace"


class Violation(Exception):
    """An invariant of the core does not hold."""

    def __init__(self, invariant: str, what: str) -> None:
        super().__init__(f"{invariant}: {what}")
        self.invariant, self.what = invariant, what


@dataclass(frozen=True, slots=True)
class Run:
    """One seed, run to its end or to the first violation."""

    seed: int
    #: Store calls that were carried out.
    steps: int
    #: Virtual seconds.
    seconds: float
    #: What happened how often: jobs, crashes, faults …
    counts: dict[str, int]
    violation: tuple[str, str] | None
    trace: tuple[str, ...]
    #: Which world: see `campaign.WORLDS`.
    world: str = "jobs"

    @property
    def ok(self) -> bool:
        """Whether every invariant held."""
        return self.violation is None

    @property
    def trace_hash(self) -> str:
        """A fingerprint of everything that happened, equal wherever the seed is run by the same code."""
        return hashlib.sha256("\n".join(self.trace).encode()).hexdigest()

    @property
    def replay(self) -> str:
        """The command that shows it again."""
        return REPLAY.format(seed=self.seed) + ("" if self.world == "jobs" else f" --world {self.world}")

    def report(self, last: int = 40) -> str:
        """Return what somebody needs who has to find the defect; `last` lines of the trace."""
        if self.violation is None:
            return f"seed {self.seed}: every invariant held in {self.steps} steps"
        invariant, what = self.violation
        lines = [
            f"seed {self.seed}, step {self.steps}, at {self.seconds:.3f} s: {invariant}",
            f"  {what}",
            f"the last {min(last, len(self.trace))} of {len(self.trace)} lines:",
            *(f"  {line}" for line in self.trace[-last:]),
            f"replay: {self.replay}",
        ]
        return "\n".join(lines)


class Trace:
    """What happened, in order; put into words only when somebody asks."""

    def __init__(self) -> None:
        self._entries: list[tuple[float, Sequence[Any]]] = []

    def add(self, now: float, *what: Any) -> None:
        """Note one event. What is given must not change afterwards."""
        self._entries.append((now, what))

    def lines(self) -> tuple[str, ...]:
        """Return one line for each event."""
        return tuple(f"{now:10.4f}  {' '.join(map(shown, what))}" for now, what in self._entries)


def shown(value: Any) -> str:
    """Return a value as a trace shows it: ids by their last digits, sets in order."""
    match value:
        case str():
            return value
        case UUID():
            return f"…{value.hex[-6:]}"
        case list() | tuple():
            return f"[{', '.join(map(shown, value))}]"
        case set() | frozenset():
            return f"{{{', '.join(sorted(map(shown, value)))}}}"
        case BaseException():
            return f"{type(value).__name__}({value})"
        case _:
            return str(value)
