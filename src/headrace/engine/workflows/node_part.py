"""A node that is no task, at node level: its job does what its kind does, or passes the node over."""

from __future__ import annotations

import json
from dataclasses import dataclass
from uuid import UUID

from headrace.engine.attempt import Attempt
from headrace.engine.workflows.kinds import Kinds, started
from headrace.engine.workflows.means import Fence, Means
from headrace.engine.workflows.moving import Moved, end_node
from headrace.model.graph.flow import leads
from headrace.model.graph.layout import Place
from headrace.model.graph.nodes import TaskNode
from headrace.model.graph.paths import join_path
from headrace.model.job import Completion, JobState
from headrace.model.run import NodeEnding, NodeState


@dataclass(frozen=True, slots=True)
class NodePart:
    """One attempt of the job of a node that is no task, or of the end of a graph."""

    means: Means
    run_id: UUID
    path: str

    async def run(self, attempt: Attempt) -> Completion:
        """Return how the job ends."""
        began = self.means.clock.now()
        facts = await self.means.known.get(self.run_id)
        job = attempt.job
        kinds = self.means.kinds(facts, Fence(self.means.stores.jobs, job.id, job.attempt, attempt.call.session).keep)
        args = json.loads(job.args)["args"]
        moved = started(await self._move(kinds, args[0] if args else 0), began)
        if moved.park is not None:
            return Completion(job.id, job.attempt, JobState.PARKED, park=moved.park)
        failed = next((one for one in moved.endings if one.path == self.path and one.state is NodeState.FAILED), None)
        state = JobState.SUCCEEDED if failed is None else JobState.FAILED
        error = None if failed is None else failed.error
        return Completion(job.id, job.attempt, state, error=error, effects=moved.effects(facts))

    async def _move(self, kinds: Kinds, first: int) -> Moved:
        if not self.path.endswith("/"):
            place = kinds.facts.place(self.path)
            if isinstance(place.node, TaskNode) or not await _is_led_to(kinds, place):
                return end_node(kinds.facts, NodeEnding(self.path, NodeState.SKIPPED), lambda: None)
        return await kinds.run(self.path, first)


async def _is_led_to(kinds: Kinds, place: Place) -> bool:
    """Whether enough of those before a node lead to it; where one alone decides it has been decided."""
    layout, name = place.layout, place.node.id
    edges = layout.incoming[name]
    sources = dict.fromkeys(edge.source for edge in edges)
    if len(sources) < 2:
        return True
    ended = await kinds.endings.read([join_path(place.scope, source) for source in sources])
    fired = 0
    for edge in edges:
        ending = ended.get(join_path(place.scope, edge.source))
        if ending is None:
            continue
        has_value = edge.when is not None and ending.output is not None
        value = await kinds.values.load(ending.output) if has_value and ending.output else None
        fired += leads(layout, edge, ending, lambda value=value: value)  # type: ignore[misc]
    return fired >= layout.need(name)
