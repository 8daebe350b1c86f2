"""From how a job ended to how its node did."""

from __future__ import annotations

from headrace.engine.workflows.facts import RunFacts
from headrace.engine.workflows.moving import failed_ending
from headrace.model.graph.nodes import OnOpen
from headrace.model.job import JobError, JobState
from headrace.model.run import NodeEnding, NodeState

_BREAKER_OPEN = "breaker_open"


def node_ending(facts: RunFacts, path: str, state: JobState, error: JobError | None, attempts: int) -> NodeEnding:
    """Return the end of a node whose job ended without a result."""
    if state is JobState.CANCELLED:
        return NodeEnding(path, NodeState.CANCELLED, error=error, attempts=attempts)
    if error is not None and error.kind == _BREAKER_OPEN and facts.place(path).node.options.on_open is OnOpen.SKIP:
        return NodeEnding(path, NodeState.SKIPPED, error=error, attempts=attempts)
    return failed_ending(facts, path, error, attempts=attempts)
