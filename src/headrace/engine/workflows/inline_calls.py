"""Calls of tasks at workflow level: each try is an attempt of its own, within the job of the run.

Tries that failed are kept as steps of that job, so that another attempt of it goes on counting.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.engine.attempt import Attempt, Proceed, StopReason, describe, run_attempt
from headrace.engine.attempts import AttemptFactory, steps_below
from headrace.engine.job_log import log_end, log_start
from headrace.engine.values import Values
from headrace.engine.workflows.calls import Call, Repeats
from headrace.engine.workflows.endings import node_ending
from headrace.engine.workflows.facts import RunFacts, Start
from headrace.engine.workflows.inputs import Inputs
from headrace.engine.workflows.kinds import Kinds
from headrace.engine.workflows.means import Fence, Means
from headrace.engine.workflows.patience import AGAIN, patiently, unstored
from headrace.engine.workflows.retries import backoff_of
from headrace.engine.workflows.tries import Tries
from headrace.model.crashes import MAX_LONE_CRASHES, POISON
from headrace.model.errors import BlobStoreError, FenceLostError, HeadraceError
from headrace.model.graph.nodes import TaskNode
from headrace.model.job import Completion, JobError, JobState, NewJob
from headrace.model.parking import KEEP_SLOT
from headrace.model.reference import MAX_VALUE_BYTES
from headrace.model.run import UNBOUND, NodeEnding, NodeState
from headrace.model.usage import Usage, current_meter

LOG = logging.getLogger("headrace.runs")


@dataclass(frozen=True, slots=True)
class Called:
    """What came of a call: an end, or what is to be waited for before the next try."""

    ending: NodeEnding | None = None
    #: Of the map that it is an entry of; None: not known.
    entries: int | None = None
    wait: timedelta | None = None
    #: The signal it waits for.
    key: str | None = None
    #: Why this process cannot make the call.
    impossible: str = ""


@dataclass(frozen=True, slots=True)
class Begin:
    """How a try begins: with a call, with what is lost of its arguments, or not at all, as something came of it."""

    call: Call | None = None
    lost: BlobStoreError | None = None
    called: Called | None = None


@dataclass(slots=True)
class InlinePart:
    """One try of a task's node: its end is no end of a job, and nothing goes along with it."""

    values: Values
    run_id: UUID
    path: str
    #: Paths whose handler has ended: see `InlineCalls`.
    leaving: set[str]
    #: Why its arguments cannot be read.
    lost: BlobStoreError | None = None
    most_bytes: int = MAX_VALUE_BYTES

    async def run(self, attempt: Attempt, proceed: Proceed) -> Any:
        """Run the handler: its arguments are there, or this is a try that failed."""
        if self.lost is not None:
            raise self.lost
        return await proceed(attempt)

    async def leave(self, attempt: Attempt, completion: Completion) -> Completion | None:
        """Return the completion with what stands for the output, which is stored then.

        While storage cannot answer what the handler returned is held here; in the end its try has failed.
        """
        self.leaving.add(self.path)
        if completion.state is not JobState.SUCCEEDED:
            return completion
        try:
            output = await patiently(attempt, lambda: self.values.store(self.run_id, completion.result or "null"))
        except HeadraceError as error:
            if error.transient:
                return unstored(attempt, completion, error)
            return replace(completion, state=JobState.FAILED, result=None, error=describe(error))
        return replace(completion, result=output)


@dataclass(slots=True)
class InlineCalls:
    """Makes the calls of one run."""

    means: Means
    facts: RunFacts
    kinds: Kinds
    outer: Attempt
    factory: AttemptFactory
    fence: Fence
    tries: Tries
    #: Crashes of a node's own child since it last made progress.
    crashes: Counter[str] = field(default_factory=Counter)
    running: list[Attempt] = field(default_factory=list)
    #: Paths whose handler has ended and only its ending is worked out and stored: that is not stopped any more.
    leaving: set[str] = field(default_factory=set)
    #: Whether the run's own job was stopped.
    stopped: bool = False

    @property
    def _closing(self) -> bool:
        """Whether no further try begins in this attempt of the run: its worker is about to end, or it is stopped."""
        return self.stopped or self.outer.closing

    async def call(self, start: Start) -> Called:
        """Make the call of a node until it ends, has to wait for longer than a slot is kept for, or the worker ends."""
        node = self.facts.place(start.path).node
        assert isinstance(node, TaskNode)
        began = self.means.clock.now()
        left = self.tries.until.get(start.path, began) - began
        if left > timedelta():
            if left > KEEP_SLOT or self._closing:
                return Called(wait=left)
            await asyncio.sleep(left.total_seconds())
        try:
            called = await self._tries(start, node)
        except HeadraceError as error:
            # What nobody can do anything about by trying again is the node's end; what a fence refused is nobody's.
            if error.transient or isinstance(error, FenceLostError):
                raise
            error_text = JobError(error.code, str(error))
            ending = node_ending(self.facts, start.path, JobState.FAILED, error_text, self.tries.failures[start.path])
            return Called(ending, await self.kinds.entries_of(start.path))
        if called.ending is not None:
            called.ending.started_at = began
        return called

    async def _bind(self, start: Start, node: TaskNode) -> Call:
        if start.args != UNBOUND:
            return Call.of_entry(node, await self.means.values.load(start.args))
        inputs = Inputs(self.facts, self.kinds.endings, self.means.values)
        return Call.of(node, *await inputs.arguments(self.facts.place(start.path)))

    async def _reused(self, path: str, call: Call) -> Called | None:
        found = await Repeats(self.facts, self.means).find(path, call)
        if found is None:
            return None
        output, before = found.output, self.facts.view.rerun_of
        if output is not None:
            output = await self.means.values.take_over(self.facts.id, output, before)
        return Called(NodeEnding(path, NodeState.SUCCESS, output, found.port, reused=True))

    async def _tries(self, start: Start, node: TaskNode) -> Called:
        path = start.path
        if self.factory.farms_out(self.facts.specs[node.task].queue):
            return Called(impossible=f"task {node.task} runs on a farm: it needs a job of its own")
        while not self._closing:
            begin = await self._begin(start, node)
            if begin.called is not None:
                return _of(begin.call, begin.called)
            attempt = self._attempt(path, node, begin)
            if attempt is None:
                return Called(impossible=f"this worker does not know task {node.task}")
            completion = await self._run(attempt)
            if completion is None or (attempt.stop_reason is not None and not completion.state.final):
                # It was stopped with the run's own job, and swallowed that: nothing of it begins again here.
                raise asyncio.CancelledError
            self.leaving.add(path)
            if (called := await self._after(path, completion)) is not None:
                return _of(begin.call, called)
            self.leaving.discard(path)
            await asyncio.sleep(completion.delay.total_seconds())
        return Called(wait=timedelta())

    async def _begin(self, start: Start, node: TaskNode) -> Begin:
        call = None
        try:
            call = await self._bind(start, node)
            return Begin(call, called=await self._reused(start.path, call))
        except BlobStoreError as error:
            if not error.transient:
                return Begin(call, BlobStoreError(str(error)))
            # The handler has not begun: this is none of its tries.
            LOG.warning("node %s of run %s cannot begin yet: %s", start.path, self.facts.id, error)
            return Begin(called=Called(wait=AGAIN))

    async def _after(self, path: str, completion: Completion) -> Called | None:
        """Return what came of a try; None: there is another one after its delay."""
        if completion.state.final or self._is_poison(path, completion):
            return Called(self._ending(path, completion))
        if completion.park is not None:
            return Called(wait=completion.park.wait, key=completion.park.key)
        await self._note_try(path, completion)
        return Called(wait=completion.delay) if completion.delay > KEEP_SLOT or self._closing else None

    def _ending(self, path: str, completion: Completion) -> NodeEnding:
        """Return the end of a node for its last try; one that is not final is the last crash allowed."""
        tries = self.tries.failures[path] + 1
        if completion.state is JobState.SUCCEEDED:
            return NodeEnding(
                path, NodeState.SUCCESS, completion.result, completion.port, attempts=tries, events=completion.events
            )
        if completion.state.final:
            ending = node_ending(self.facts, path, completion.state, completion.error, tries)
            # With its trace: there is no job of the node that keeps it.
            ending.error = completion.error or ending.error
            return ending
        return node_ending(self.facts, path, JobState.FAILED, POISON, tries)

    def _attempt(self, path: str, node: TaskNode, begin: Begin) -> Attempt | None:
        options, spec = node.options, self.facts.specs[node.task]
        job = replace(
            self.outer.job, task=node.task, args="null" if begin.call is None else begin.call.text,
            failures=self.tries.failures[path], crashes=0, node=None,
            max_attempts=spec.max_attempts if options.retry is None else options.retry.max_tries,
            timeout=options.timeout or spec.timeout, step_prefix=f"{path}/", run=self.facts.info(path),
        )  # fmt: skip
        attempt = self.factory.make(job, self.outer.call.session)
        if attempt is not None:
            attempt.part = InlinePart(self.means.values, self.facts.id, path, self.leaving, begin.lost)
            attempt.backoff = None if options.retry is None else backoff_of(options.retry)
        return attempt

    async def _run(self, attempt: Attempt) -> Completion | None:
        self.running.append(attempt)
        began = log_start(attempt, self.means.clock)
        try:
            completion = await run_attempt(attempt, self.factory.proceed)
            if completion is not None:
                log_end(attempt, completion, self.means.clock, began)
                self._keep_log(attempt, completion)
            return completion
        finally:
            self.running.remove(attempt)
            # What a node used was counted by its own attempt; it is the run's too.
            meter = current_meter.get()
            if attempt.usage is not None and meter is not None:
                meter.add(Usage.from_json(json.loads(attempt.usage)))

    def _keep_log(self, attempt: Attempt, completion: Completion) -> None:
        """Keep what a node logged with the attempt of the run: there is no job of the node."""
        run = attempt.job.run
        if completion.log is not None and run is not None:
            self.outer.context.keep_of_node(run.node, completion.log)

    def _is_poison(self, path: str, completion: Completion) -> bool:
        """Whether the node's own child died too often without progress in between."""
        if not completion.lone_crash or completion.progressed:
            self.crashes[path] = 0
        self.crashes[path] += completion.lone_crash
        return self.crashes[path] >= MAX_LONE_CRASHES

    async def _note_try(self, path: str, completion: Completion) -> None:
        """Keep a try that failed, or that is put off, so that another attempt of the run goes on behind it."""
        self.tries.failures[path] += completion.charged
        if not completion.charged and completion.delay <= KEEP_SLOT:
            return
        await self.fence.keep(*self.tries.note(path, completion, self.means.clock.now()))

    def as_job(self, job: NewJob) -> NewJob:
        """Return the job of a node that goes on as one: with the tries that it has left, and not before its time."""
        failures, until = self.tries.failures[job.node or ""], self.tries.until.get(job.node or "")
        if failures:
            job.spec = replace(job.spec, max_attempts=max(1, job.spec.max_attempts - failures))
        job.run_at = until
        return job

    def steps_of(self, jobs: Sequence[NewJob], kept: Mapping[str, str]) -> tuple[tuple[UUID, str, str], ...]:
        """Return what was kept for nodes that go on as jobs: checkpoints of handlers, and for what waits wait."""
        found: list[tuple[UUID, str, str]] = []
        for job in jobs:
            steps = steps_below(f"{job.node}/", dict(kept))
            found += [(job.id, name, value) for name, value in steps.items()]
            waits = (f"until {job.node}", f"key {job.node}")
            found += [(job.id, name, kept[name]) for name in waits if name in kept]
        return tuple(found)

    def stop(self, reason: StopReason | None) -> None:
        """Stop what runs, as the run's own job is stopped."""
        self.stopped = True
        for attempt in self.running:
            attempt.stop(reason or StopReason.RELEASED)


def _of(call: Call | None, called: Called) -> Called:
    """Return what came of a call with what the call says of it."""
    if call is None:
        return called
    if called.ending is not None:
        called.ending.artifact = call.artifact
    return replace(called, entries=call.entries)
