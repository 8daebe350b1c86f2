"""A task's node at node level: the job is given its arguments, and its end says what it sets going."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from headrace.engine.attempt import Attempt, Proceed, describe
from headrace.engine.workflows.calls import Call, Repeats
from headrace.engine.workflows.endings import node_ending
from headrace.engine.workflows.facts import RunFacts
from headrace.engine.workflows.inputs import Inputs
from headrace.engine.workflows.means import Fence, Means
from headrace.engine.workflows.patience import AGAIN, patiently, unstored
from headrace.engine.workflows.retries import backoff_of
from headrace.model.errors import BlobStoreError, HeadraceError
from headrace.model.graph.nodes import TaskNode
from headrace.model.job import Completion, JobState
from headrace.model.outcome import Done, Snooze
from headrace.model.reference import MAX_VALUE_BYTES
from headrace.model.run import UNBOUND, NodeEnding, NodeState

LOG = logging.getLogger("headrace.runs")


async def bind_call(means: Means, facts: RunFacts, path: str, args: str) -> Call:
    """Return the call of a task's node with its arguments, whichever process asks; `args`: those of its job."""
    place = facts.place(path)
    assert isinstance(place.node, TaskNode)
    if args != UNBOUND:
        return Call.of_entry(place.node, await means.values.load(args))
    inputs = Inputs(facts, means.stored(facts.id), means.values)
    return Call.of(place.node, *await inputs.arguments(place))


@dataclass(slots=True)
class TaskPart:
    """One attempt of the job of a task's node."""

    means: Means
    run_id: UUID
    path: str
    most_bytes: int = MAX_VALUE_BYTES
    _call: Call | None = None
    _reused: NodeEnding | None = None
    #: What stands for its output, once that is stored: whatever else has to be tried again, this has not.
    _output: str | None = None
    _started_at: datetime | None = field(default=None)

    async def run(self, attempt: Attempt, proceed: Proceed) -> Any:
        """Give the handler its arguments and run it, unless the run that this one repeats has its output."""
        self._started_at = self.means.clock.now()
        try:
            reused = await self._begin(attempt)
        except HeadraceError as error:
            if isinstance(error, BlobStoreError) and error.lost:
                # One of its tries, as nobody knows whether it comes back: a file system may show it late.
                raise BlobStoreError(str(error)) from None
            if not error.transient:
                raise
            # The handler has not begun: this is none of its tries.
            LOG.warning("node %s of run %s cannot begin yet: %s", self.path, self.run_id, error)
            return Snooze(AGAIN)
        if reused is not None:
            return Done(None, reused.port)
        ending = await proceed(attempt)
        if attempt.remote and isinstance(ending, Completion) and ending.state is JobState.SUCCEEDED:
            # Where it ran, it was stored.
            self._output = ending.result
        return ending

    async def _begin(self, attempt: Attempt) -> NodeEnding | None:
        facts = await self.means.known.get(self.run_id)
        options = facts.place(self.path).node.options
        attempt.backoff = None if options.retry is None else backoff_of(options.retry)
        self._call = call = await bind_call(self.means, facts, self.path, attempt.job.args)
        attempt.job.args = call.text
        attempt.job.run = attempt.context.run = facts.info(self.path)
        self._reused = await Repeats(facts, self.means).find(self.path, call)
        return self._reused

    async def leave(self, attempt: Attempt, completion: Completion) -> Completion | None:
        """Return the completion with what the end of the node sets going.

        While storage cannot answer what the handler returned is held here; in the end its try has failed.
        """
        try:
            return await patiently(attempt, lambda: self._leave(attempt, completion))
        except HeadraceError as error:
            if not error.transient:
                return await self._fail(attempt, completion, error)
            if completion.state is not JobState.SUCCEEDED:
                return completion  # the settler goes on from there
            # What it paid models for is stored: the next try is given that.
            left = unstored(attempt, completion, error)
            return left if left is None or not left.state.final else await self._end(attempt, left)
        except Exception as error:
            LOG.exception("the end of node %s of run %s cannot be worked out", self.path, self.run_id)
            return await self._fail(attempt, completion, error)

    async def _fail(self, attempt: Attempt, completion: Completion, error: Exception) -> Completion:
        """Let a node fail whose end cannot be worked out."""
        failed = replace(completion, state=JobState.FAILED, result=None, error=describe(error), effects=None)
        return await self._end(attempt, failed)

    async def _end(self, attempt: Attempt, completion: Completion) -> Completion:
        """End a node without an output; what that sets going, if it cannot be said either, is left to the settler."""
        try:
            return await self._leave(attempt, completion)
        except Exception:
            LOG.exception("the failure of node %s of run %s sets nothing going yet", self.path, self.run_id)
            return completion

    async def _leave(self, attempt: Attempt, completion: Completion) -> Completion:
        facts = await self.means.known.get(self.run_id)
        ending = await self._ending(facts, attempt, completion)
        job = attempt.job
        kinds = self.means.kinds(facts, Fence(self.means.stores.jobs, job.id, job.attempt, attempt.call.session).keep)
        moved = await kinds.finish(ending, None if self._call is None else self._call.entries)
        result = self._output if completion.state is JobState.SUCCEEDED else None
        return replace(completion, result=result, effects=moved.effects(facts))

    async def _ending(self, facts: RunFacts, attempt: Attempt, completion: Completion) -> NodeEnding:
        tries = attempt.job.failures + 1
        if completion.state is not JobState.SUCCEEDED:
            ending = node_ending(facts, self.path, completion.state, completion.error, tries)
        elif self._reused is not None:
            reused = self._reused.output or "null"
            before = facts.view.rerun_of
            self._output = self._output or await self.means.values.take_over(self.run_id, reused, before)
            ending = NodeEnding(self.path, NodeState.SUCCESS, self._output, completion.port, reused=True)
        else:
            self._output = self._output or await self.means.values.store(self.run_id, completion.result or "null")
            ending = NodeEnding(self.path, NodeState.SUCCESS, self._output, completion.port, attempts=tries)
        ending.artifact = self._call.artifact if self._call is not None else ""
        ending.started_at = self._started_at
        return ending
