"""Nodes that are no tasks, and the ends of graphs: what each does, at either level.

A path that ends in "/" is an end: of the run, of a graph within, of one entry of a map, or of all of them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from headrace.engine.codec import jsonable
from headrace.engine.values import Values
from headrace.engine.workflows.facts import RunFacts
from headrace.engine.workflows.inputs import Endings, Inputs
from headrace.engine.workflows.maps import Maps, end_entry
from headrace.engine.workflows.moving import Moved, end_node, failed_ending, has_conditions, open_scope, paths_below
from headrace.engine.workflows.waiting import Waits
from headrace.model.errors import FenceLostError, HeadraceError, InvalidInputError
from headrace.model.graph.bindings import text_parts
from headrace.model.graph.flow import fails_graph, is_plain_entry
from headrace.model.graph.holding import holds
from headrace.model.graph.layout import Layout, Place
from headrace.model.graph.nodes import LoopNode, MapNode, SubNode, TaskNode, ValueNode, WaitNode
from headrace.model.graph.paths import join_path, scope_of, split_entry
from headrace.model.job import JobError, NewJob
from headrace.model.names import check_key
from headrace.model.payload import encode_json
from headrace.model.reference import MAX_VALUE_BYTES
from headrace.model.run import START_SPEC, NodeEnding, NodeState, RunEnding, RunState

#: Entries of a map that are started by one job; it then queues up again for the next ones.
ENTRIES_AT_ONCE = 1_000
#: Keys of runs that follow the failure of another begin with this.
_FOLLOWS = "failure-of:"


@dataclass(frozen=True, slots=True)
class Kinds:
    """Runs what is no task, of one run. `chunk`: entries of a map that start at once; None: all of them."""

    facts: RunFacts
    endings: Endings
    values: Values
    waits: Waits
    chunk: int | None = ENTRIES_AT_ONCE

    @property
    def inputs(self) -> Inputs:
        """Fills the templates of the run."""
        return Inputs(self.facts, self.endings, self.values)

    @property
    def maps(self) -> Maps:
        """Starts the entries of its maps."""
        return Maps(self.facts, self.inputs, self.chunk)

    async def run(self, path: str, first: int = 0) -> Moved:
        """Return what a node, or an end, does; `first`: of a map, the entry to go on with.

        A node that cannot do it fails; errors of the store and of storage pass through.
        """
        try:
            return await (self._end(path[:-1]) if path.endswith("/") else self._do(self.facts.place(path), first))
        except HeadraceError as error:
            if error.transient or isinstance(error, FenceLostError):
                raise
            return await self.fail(path, JobError(error.code, str(error)), first)

    async def fail(self, path: str, error: JobError | None, first: int = 0) -> Moved:
        """Return what it sets going that a node, or an end, could not do what it does; `first` as `run` has it."""
        if not path.endswith("/"):
            return await self.end_job(failed_ending(self.facts, path, error), first)
        scope = path[:-1]
        if not scope:
            return end_failed_run(self.facts, error)
        container, index = split_entry(scope)
        if isinstance(self.facts.place(container).node, MapNode) and index is not None:
            return await self._end_entry(NodeEnding(scope, NodeState.FAILED, error=error), container)
        return await self.finish(failed_ending(self.facts, container, error))

    async def _do(self, place: Place, first: int) -> Moved:
        match place.node:
            case ValueNode():
                return await self._value(place, place.node)
            case WaitNode():
                return await self._wait(place, place.node)
            case MapNode():
                return await self._map(place, place.node, first)
            case LoopNode() | SubNode():
                return await self._enter(place, place.node)
            case TaskNode():
                raise AssertionError(f"{place.path} is a task")

    async def end_job(self, ending: NodeEnding, first: int) -> Moved:
        """Return the end of a node whose job ended without what it was for; of a map, from the entry `first` on.

        A map that has begun ends by its entries: the others may run.
        """
        begun = await self.maps.begun(ending.path)
        if begun is None:
            return await self.finish(ending)
        return self.maps.fail_part(ending.path, begun, first, ending.state, ending.error)

    async def finish(self, ending: NodeEnding, entries: int | None = None) -> Moved:
        """Return the end of a node with what it sets going; `entries` as `entries_of` has it, None: not known."""
        if entries is None:
            entries = await self.entries_of(ending.path)
        value = None
        if ending.output is not None and has_conditions(self.facts, ending.path):
            value = await self.values.load(ending.output)
        return end_node(self.facts, ending, lambda: value, entries)

    async def entries_of(self, path: str) -> int:
        """Return how many entries the map has whose body is this one node; 0 for any other."""
        scope = scope_of(path)
        if not scope or not is_plain_entry(self.facts.layout, scope):
            return 0
        return await self.maps.count(split_entry(scope)[0])

    async def store(self, value: Any) -> str:
        """Return the text of a value, or of a reference to it."""
        return await self.values.store(self.facts.id, _text(value))

    async def _succeed(self, path: str, output: str | None) -> Moved:
        return await self.finish(NodeEnding(path, NodeState.SUCCESS, output))

    async def _value(self, place: Place, node: ValueNode) -> Moved:
        value = await self.inputs.start_value(place, node.value, has_template=node.given)
        return await self._succeed(place.path, await self.store(value))

    async def _wait(self, place: Place, node: WaitNode) -> Moved:
        key = None if node.signal is None else await self._signal_key(place, node.signal)
        waited = await self.waits.wait(place.path, key, node.timeout)
        if waited.park is not None:
            return Moved(park=waited.park)
        if waited.timed_out and key is not None:
            message = f"no signal {key!r} came within {node.timeout}"
            return await self.finish(failed_ending(self.facts, place.path, JobError("signal_timeout", message)))
        payload = "null" if waited.payload is None else waited.payload
        return await self._succeed(place.path, await self.values.store(self.facts.id, payload))

    async def _signal_key(self, place: Place, template: Any) -> str:
        """Return the key of a signal. Raises InvalidInputError, also where a reference in it gives nothing.

        Without that part the key would be the same for every run, and one signal would wake all of them.
        """
        field, parts = f"signal of node {place.path}", text_parts(template)
        key, *values = await self.inputs.fill(place, [template, *parts])
        for part, value in zip(parts, values, strict=True):
            if isinstance(part, dict) and value in (None, ""):
                raise InvalidInputError(field, "must have no reference that gives null or an empty text", part)
        check_key(field, key)
        if not values:
            return str(key)
        # What it names may give something else once another node has ended: the first key is what is waited for.
        return str(json.loads(await self.waits.keep(f"key {place.path}", json.dumps(key))))

    # Graphs within

    async def _enter(self, place: Place, node: LoopNode | SubNode) -> Moved:
        value = await self.inputs.start_value(place, node.start, has_template=node.given)
        scope = f"{place.path}[0]" if isinstance(node, LoopNode) else place.path
        return open_scope(self.facts, scope, await self.store(value))

    async def _map(self, place: Place, node: MapNode, first: int) -> Moved:
        moved = await self.maps.start(place, node, first)
        return await self._succeed(place.path, "[]") if moved is None else moved

    # Ends

    async def _end(self, scope: str) -> Moved:
        layout = self.facts.layout
        if not scope:
            return await self._end_run()
        container, index = split_entry(scope)
        place = layout.place(container)
        if isinstance(place.node, MapNode) and index is None:
            return await self._end_map(place, place.node)
        state, output, error = await self._result(layout.at(scope), scope)
        if isinstance(place.node, MapNode):
            return await self._end_entry(NodeEnding(scope, state, output, error=error), container)
        if state is not NodeState.SUCCESS:
            return await self.finish(failed_ending(self.facts, container, error))
        if isinstance(place.node, LoopNode) and index is not None and index + 1 < place.node.most:
            value = None if output is None else await self.values.load(output)
            if holds(place.node.again, value):
                return open_scope(self.facts, f"{container}[{index + 1}]", output)
        return await self._succeed(container, output)

    async def _end_entry(self, ending: NodeEnding, container: str) -> Moved:
        return end_entry(ending, await self.maps.count(container))

    async def _end_map(self, place: Place, node: MapNode) -> Moved:
        count = await self.maps.count(place.path)
        body = self.facts.layout.at(f"{place.path}[0]")
        only = body.graph.nodes[0].id
        plain = is_plain_entry(self.facts.layout, f"{place.path}[0]")
        paths = [f"{place.path}[{index}]" + (f"/{only}" if plain else "") for index in range(count)]
        ended = await self.endings.read(paths)
        ends = [ended[path] for path in paths if path in ended]
        failed = [one for one in ends if (_fails(body, one) if plain else _lost(one))]
        if node.max_failed is not None and len(failed) > node.max_failed:
            error = _entries_error(len(failed), len(paths), failed[0])
            return await self.finish(failed_ending(self.facts, place.path, error))
        outputs = [_output_of(ended.get(path)) for path in paths]
        return await self._succeed(place.path, await self.maps.store_list(outputs))

    async def _end_run(self) -> Moved:
        state, output, error = await self._result(self.facts.layout, "")
        if state is NodeState.SUCCESS:
            return Moved(ending=RunEnding(RunState.SUCCEEDED, output))
        return end_failed_run(self.facts, error)

    async def _result(self, layout: Layout, scope: str) -> tuple[NodeState, str | None, JobError | None]:
        """Return what the graph at a scope comes to."""
        paths = paths_below(scope, layout.nodes)
        ended = await self.endings.read(paths)
        for path in paths:
            if path in ended and _fails(layout, ended[path]):
                return NodeState.FAILED, None, _node_error(ended[path])
        if layout.graph.has_output:
            try:
                value = await self.inputs.fill_of_graph(layout, scope, layout.graph.output)
                return NodeState.SUCCESS, await self.store(value), None
            except InvalidInputError as error:
                return NodeState.FAILED, None, JobError(error.code, str(error))
        return NodeState.SUCCESS, await self._leaves_output(layout, scope, ended), None

    async def _leaves_output(self, layout: Layout, scope: str, ended: Mapping[str, NodeEnding]) -> str:
        leaves = layout.leaves
        if len(leaves) == 1:
            return _output_of(ended.get(join_path(scope, leaves[0])))
        outputs = {name: ended.get(join_path(scope, name)) for name in leaves}
        parts = (f"{json.dumps(name)}:{_output_of(one)}" for name, one in outputs.items() if one and not _lost(one))
        return await self.values.store_composed(self.facts.id, f"{{{','.join(parts)}}}")


def end_failed_run(facts: RunFacts, error: JobError | None) -> Moved:
    """Return the end of a run that failed, and the start of what is to follow then."""
    moved = Moved(ending=RunEnding(RunState.FAILED, None, error))
    follower = facts.layout.graph.on_failure
    # One that follows a failure and fails itself is followed by nothing: that could go on for ever.
    if follower is not None and not (facts.view.key or "").startswith(_FOLLOWS):
        report = {
            "workflow": facts.view.workflow,
            "run_id": str(facts.id),
            "error": None if error is None else {"kind": error.kind, "message": error.message},
        }
        call = {"args": [follower, report, f"{_FOLLOWS}{facts.id}"], "kwargs": {}}
        moved.jobs.append(NewJob(START_SPEC, encode_json(call, field="report")))
    return moved


def started(moved: Moved, at: datetime) -> Moved:
    """Note when the first node of a step began."""
    if moved.endings:
        moved.endings[0] = replace(moved.endings[0], started_at=at)
    return moved


def _text(value: Any) -> str:
    return encode_json(value, field="output", default=jsonable, most=MAX_VALUE_BYTES)


def _lost(ending: NodeEnding) -> bool:
    return ending.state in (NodeState.FAILED, NodeState.CANCELLED)


def _fails(layout: Layout, ending: NodeEnding) -> bool:
    """Whether a node's end fails the graph it stands in."""
    return ending.state is NodeState.CANCELLED or fails_graph(layout, ending)


def _output_of(ending: NodeEnding | None) -> str:
    done = ending is not None and ending.state is NodeState.SUCCESS and ending.output is not None
    return ending.output if done and ending and ending.output else "null"


def _entries_error(failed: int, total: int, first: NodeEnding) -> JobError:
    why = f"{first.error.kind}: {first.error.message}" if first.error else first.state.value
    return JobError("entries_failed", f"{failed} of {total} entries failed; the first: {why}")


def _node_error(ending: NodeEnding) -> JobError:
    if ending.error is None:
        return JobError("node_failed", f"node {ending.path} was {ending.state}")
    return JobError(ending.error.kind, f"node {ending.path}: {ending.error.message}", ending.error.trace)
