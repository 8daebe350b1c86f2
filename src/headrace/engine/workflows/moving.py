"""From the end of a node to what it sets going, in the words of `model/graph/flow.py`, and from there to effects."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from headrace.engine.workflows.facts import RunFacts, Start
from headrace.model.graph.flow import Moves, Step, after, open_graph
from headrace.model.graph.nodes import OnError
from headrace.model.graph.paths import input_of, join_path
from headrace.model.job import JobError, NewJob, Park
from headrace.model.run import Arrival, Effects, Level, NodeEnding, NodeState, RunEnding
from headrace.model.webhook import run_job


@dataclass(slots=True)
class Moved:
    """What one step of a run did and sets going."""

    endings: list[NodeEnding] = field(default_factory=list)
    arrivals: list[Step] = field(default_factory=list)
    starts: list[Start] = field(default_factory=list)
    #: Jobs beside the run.
    jobs: list[NewJob] = field(default_factory=list)
    ending: RunEnding | None = None
    #: Nothing yet: the node waits for this.
    park: Park | None = None

    def add(self, moves: Moves) -> None:
        """Take over what the rules say."""
        self.endings += moves.skipped
        self.arrivals += moves.arrivals
        self.starts += [Start(path) for path in moves.starts]

    def join(self, other: Moved) -> None:
        """Take over what goes on in the run by another step; jobs beside the run, its end and a wait stand alone."""
        self.endings += other.endings
        self.arrivals += other.arrivals
        self.starts += other.starts

    def effects(self, facts: RunFacts, *, level: Level | None = None, reason: str = "") -> Effects:
        """Return it as what a completion carries."""
        jobs = facts.jobs([Start(step.path) for step in self.arrivals])
        return Effects(
            facts.id,
            tuple(self.endings),
            tuple(
                Arrival(step.path, step.total, step.need, job, fired=int(step.fired))
                for step, job in zip(self.arrivals, jobs, strict=True)
            ),
            (*facts.jobs(self.starts), *self.jobs, *self._messages(facts)),
            level=level,
            reason=reason,
            ending=self.ending,
        )

    def _messages(self, facts: RunFacts) -> list[NewJob]:
        """Return what tells of the run's end, where that was asked for."""
        return [] if self.ending is None or facts.webhook is None else [run_job(facts.id, facts.webhook)]


def end_node(facts: RunFacts, ending: NodeEnding, read: Callable[[], Any], entries: int = 0) -> Moved:
    """Return the end of a node with what it sets going; `read` gives the value of its output.

    `entries`: of a map whose body is this one node.
    """
    place, moved = facts.place(ending.path), Moved([ending])
    moved.add(after(facts.layout, place.scope, place.node.id, ending, read, entries))
    return moved


def open_scope(facts: RunFacts, scope: str, given: str | None) -> Moved:
    """Return the start of the graph at a scope, which is given a stored value."""
    moved = Moved([NodeEnding(input_of(scope), NodeState.SUCCESS, given)])
    moved.starts = [Start(path) for path in open_graph(facts.layout, scope)]
    return moved


def has_conditions(facts: RunFacts, path: str) -> bool:
    """Whether the value of a node's output decides where it leads."""
    place = facts.place(path)
    return any(edge.when is not None for edge in place.layout.outgoing[place.node.id])


def failed_ending(facts: RunFacts, path: str, error: JobError | None, **more: Any) -> NodeEnding:
    """Return the end of a node that failed; where its error is an output, with that."""
    error = error or JobError("unknown", "no error was recorded")
    error = JobError(error.kind, error.message)
    output = None
    if facts.place(path).node.options.on_error is OnError.OUTPUT:
        output = json.dumps({"kind": error.kind, "message": error.message})
    return NodeEnding(path, NodeState.FAILED, output, error=error, **more)


def paths_below(scope: str, names: Iterable[str]) -> list[str]:
    """Return the paths of nodes of the graph at a scope."""
    return [join_path(scope, name) for name in names]
