"""The referee: looks at the store after every call that was carried out there, and names the first rule broken."""

from __future__ import annotations

from dataclasses import replace
from typing import Protocol
from uuid import UUID

from headrace.model.stats import Rescued
from headrace.testing.simulation.faults import Fate, Network, Observer, Request
from headrace.testing.simulation.loop import VirtualLoop
from headrace.testing.simulation.report import Trace
from headrace.testing.simulation.watch import WatchedState

#: After so many calls every row is looked at, not only those that a verb moved.
THOROUGH_EVERY = 64

#: Verbs that only read, and renewals, are not worth a line in the trace.
QUIET = frozenset(
    {"final_jobs", "known_jobs", "get_batch", "get_job", "load_steps", "read_steps", "sessions_on", "batch_progress"}
)


class Rules(Protocol):
    """Invariants on one subject. Breaches are told to the referee, never raised."""

    def before(self, request: Request) -> None:
        """Look at what a call finds."""
        ...

    def after(self, request: Request, moved: list[UUID], result: object, error: BaseException | None) -> None:
        """Look at what a call left behind."""
        ...

    def thorough(self) -> None:
        """Look at everything."""
        ...


class Referee(Observer):
    """Asks all rules, keeps the trace, and stops the loop at the first breach."""

    def __init__(self, loop: VirtualLoop, state: WatchedState) -> None:
        self.loop, self.state = loop, state
        self.trace = Trace()
        self.steps = 0
        self.violation: tuple[str, str] | None = None
        self.rules: list[Rules] = []
        self.network: Network
        #: Nothing is noted or judged any more.
        self.over = False

    def breach(self, invariant: str, what: str) -> None:
        """An invariant does not hold: the run ends here. Only the first one counts."""
        if not self.over:
            self.violation = (invariant, what)
            self.note("BREACH", invariant, what)
            self.over = True
            self.loop.stop()

    def note(self, *what: object) -> None:
        """Add a line to the trace."""
        if not self.over:
            self.trace.add(self.loop.now, *what)

    def before(self, request: Request) -> None:
        """A call arrives."""
        for rules in self.rules:
            rules.before(request)

    def between(self, request: Request) -> None:
        """A call gave others a turn."""
        if self.state.moved:
            self.breach("atomicity", f"{request.verb} changed jobs and then gave others a turn")

    def after(self, request: Request, result: object, error: BaseException | None) -> None:
        """A call was carried out."""
        self.steps += 1
        moved, self.state.moved = list(self.state.moved), {}
        self._note(request, moved, result, error)
        for rules in self.rules:
            rules.after(request, moved, result, error)
        if self.steps % THOROUGH_EVERY == 0:
            self.thorough()

    def _note(self, request: Request, moved: list[UUID], result: object, error: BaseException | None) -> None:
        routine = request.fate is Fate.ANSWERED and not moved and error is None
        if not (routine and (request.verb in QUIET or not result)):
            fate = () if request.fate is Fate.ANSWERED else (f"<{request.fate.value}>",)
            self.note(request.actor, request.verb, *fate, "->", error or _brief(result), "moved", moved)

    def thorough(self) -> None:
        """Look at everything."""
        for rules in self.rules:
            rules.thorough()


def _brief(result: object) -> object:
    """Return what a trace shows of an answer: it must not change later, be short, and the same in every process."""
    if isinstance(result, list | tuple):
        return [getattr(item, "id", item) for item in result]
    if isinstance(result, Rescued):
        return replace(result, queues=sorted(result.queues), batches=sorted(result.batches))  # type: ignore[arg-type]
    return sorted(result) if isinstance(result, frozenset) else result
