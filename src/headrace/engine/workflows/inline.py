"""A run at workflow level: one job runs the graph, branches side by side, and keeps the end of each node as it comes.

It goes by the same rules as nodes that are jobs of their own (`model/graph/flow.py`) and keeps the sums itself. An
attempt that follows another plays the graph from its beginning, and where an end is stored takes that. At any such
point the rest can be handed over to node level: what has been counted and what is about to start become effects.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

from headrace.engine.attempt import Attempt, StopReason
from headrace.engine.workflows.facts import RunFacts, Start
from headrace.engine.workflows.inline_calls import Called, InlineCalls
from headrace.engine.workflows.kinds import Kinds, started
from headrace.engine.workflows.means import Means
from headrace.engine.workflows.moving import Moved
from headrace.engine.workflows.patience import patiently
from headrace.engine.workflows.saving import Saver
from headrace.model.graph.flow import Step
from headrace.model.graph.nodes import TaskNode, WaitNode
from headrace.model.graph.paths import input_of
from headrace.model.job import Completion, JobState
from headrace.model.run import Arrival, Effects, Level, NodeEnding, NodeState, RunEnding, RunState

#: A run whose worker died so often is moved on: node by node it can be told which one did it.
MOST_CRASHES = 2


@dataclass(slots=True)
class Sum:
    """Arrivals at a path so far."""

    step: Step
    count: int = 0
    fired: int = 0

    @property
    def decided(self) -> bool:
        """Whether the path starts, or is passed over."""
        return self.fired >= self.step.need or self.count >= self.step.total


@dataclass(slots=True)
class HeldEndings:
    """The ends of nodes as this job knows them."""

    held: dict[str, NodeEnding]

    async def read(self, paths: Sequence[str]) -> Mapping[str, NodeEnding]:
        """Return those of `paths` that ended, by path."""
        return {path: self.held[path] for path in paths if path in self.held}


@dataclass(slots=True)
class GraphRun:
    """One attempt of a run's own job."""

    means: Means
    facts: RunFacts
    attempt: Attempt
    calls: InlineCalls
    saver: Saver
    kinds: Kinds
    ends: HeldEndings
    sums: dict[str, Sum] = field(default_factory=dict)
    #: What starts next.
    ready: list[Start] = field(default_factory=list)
    running: dict[asyncio.Task[None], Start] = field(default_factory=dict)
    #: Paths that are passed over: too few of those before lead to them.
    passed: set[str] = field(default_factory=set)
    ending: RunEnding | None = None
    moved: Moved = field(default_factory=Moved)
    #: Why the run goes on at node level.
    move_on: str = ""
    #: Nodes that wait for their time, on the loop's clock.
    due: list[tuple[float, Start]] = field(default_factory=list)
    #: What is not started any more, since the run moves on or its worker ends.
    left: list[Start] = field(default_factory=list)

    async def run(self) -> Completion:
        """Run the graph to its end, until all of it waits, or until the rest is handed over or left to another one."""
        self.ready = [Start(name) for name in self.facts.layout.roots]
        if self.attempt.job.crashes >= MOST_CRASHES:
            self.move_on = f"its worker died {self.attempt.job.crashes} times"
        began = asyncio.get_running_loop().time()
        try:
            while self.ending is None:
                self._look_at_bounds(asyncio.get_running_loop().time() - began)
                self._take_due()
                self._start_ready()
                if not self.running:
                    break
                done, _ = await asyncio.wait(
                    self.running, timeout=self._until_due(), return_when=asyncio.FIRST_COMPLETED
                )
                for task in done:
                    del self.running[task]
                    task.result()
        except BaseException:
            await self._stop_running()
            raise
        await self._stop_running()
        return await self._completion()

    def _until_due(self) -> float | None:
        now = asyncio.get_running_loop().time()
        return max(0.0, min(at for at, _ in self.due) - now) if self.due else None

    def _take_due(self) -> None:
        """Make ready what has waited long enough."""
        now = asyncio.get_running_loop().time()
        self.ready += [start for at, start in self.due if at <= now]
        self.due = [(at, start) for at, start in self.due if at > now]

    def _look_at_bounds(self, seconds: float) -> None:
        bounds = self.means.bounds
        if bounds.fixed or self.move_on:
            return
        if seconds > bounds.longest.total_seconds():
            self.move_on = f"it ran longer than {bounds.longest}"

    def _start_ready(self) -> None:
        """Start what is ready; once the run moves on, or its worker ends, only what needs no work."""
        waiting: list[Start] = []
        while self.ready:
            start = self.ready.pop(0)
            if (self.move_on or self.attempt.closing) and not self._is_free(start.path):
                self.left.append(start)
            elif len(self.running) >= self.means.bounds.at_once:
                waiting.append(start)
            else:
                self.running[asyncio.create_task(self._step(start))] = start
        self.ready = waiting

    def _is_free(self, path: str) -> bool:
        """Whether nothing has to be run for a path: its end is known, or follows from others, or it has begun.

        A container that had begun in an earlier attempt is only gone through again: what ended within is not to be run
        once more by a job that begins it anew.
        """
        return path in self.passed or path.endswith("/") or self._has_begun(path)

    def _has_begun(self, path: str) -> bool:
        """Whether a node has ended, or is a container that was given what it runs on."""
        return any(known in self.ends.held for known in (path, input_of(path), input_of(f"{path}[0]")))

    async def _step(self, start: Start) -> None:
        """Run one node, or take its end as it is stored, and count what it sets going."""
        stored = self.ends.held.get(start.path)
        if stored is None and start.path in self.passed:
            stored = NodeEnding(start.path, NodeState.SKIPPED)
            self.ends.held[start.path] = stored
            self.saver.keep([stored])
        if stored is not None:
            await self._take(await self.kinds.finish(stored), known=True)
        elif not start.path.endswith("/") and isinstance(self.facts.place(start.path).node, TaskNode):
            await self._call(start)
        else:
            await self._do(start)

    async def _do(self, start: Start) -> None:
        began = self.means.clock.now()
        moved = started(await self.kinds.run(start.path), began)
        if moved.park is not None:
            wait = moved.park.wait
            if moved.park.key is not None or wait is None:
                self.move_on = self.move_on or f"node {start.path} waits for a signal"
                self.left.append(start)
            else:
                self._wait(start, wait)
            return
        if self._is_too_wide(moved) and not self.move_on:
            self.move_on = f"node {start.path} has more than {self.means.bounds.most_nodes} entries"
        if self._is_too_wide(moved) and not any(self._has_begun(one.path) for one in moved.starts):
            # Nothing of it has begun: as a job it starts its entries in parts.
            self.left.append(start)
            return
        # What played again gives the same need not be durable by itself: it is written with the next end of a task.
        is_wait = not start.path.endswith("/") and isinstance(self.facts.place(start.path).node, WaitNode)
        await self._take(moved, known=not is_wait)

    def _is_too_wide(self, moved: Moved) -> bool:
        bounds = self.means.bounds
        return len(moved.starts) > bounds.most_nodes and not bounds.fixed

    async def _call(self, start: Start) -> None:
        try:
            called = await self.calls.call(start)
            if called.ending is not None:
                ending, entries = called.ending, called.entries
                await self._take(await patiently(self.attempt, lambda: self.kinds.finish(ending, entries)))
            else:
                self._put_off(start, called)
        finally:
            self.calls.leaving.discard(start.path)

    def _put_off(self, start: Start, called: Called) -> None:
        if called.impossible:
            self.move_on = self.move_on or called.impossible
            self.left.append(start)
        elif called.key is not None or called.wait is None:
            self.move_on = self.move_on or f"node {start.path} waits for a signal"
            self.left.append(start)
        else:
            self._wait(start, called.wait)

    def _wait(self, start: Start, wait: timedelta) -> None:
        """Run a node again later: here, if anything else runs till then, else in another attempt of the job."""
        self.due.append((asyncio.get_running_loop().time() + wait.total_seconds(), start))

    async def _take(self, moved: Moved, *, known: bool = False) -> None:
        new = [ending for ending in moved.endings if ending.path not in self.ends.held]
        if new:
            self.ends.held.update((ending.path, ending) for ending in new)
        if moved.ending is not None:
            self.ending, self.moved = moved.ending, moved
            self.saver.keep(new)
            return
        if known:
            self.saver.keep(new)
        else:
            await self.saver.save(new)
        for step in moved.arrivals:
            self._arrive(step)
        self.ready += moved.starts

    def _arrive(self, step: Step) -> None:
        held = self.sums.setdefault(step.path, Sum(step))
        before = held.decided
        held.count += 1
        held.fired += step.fired
        if held.decided and not before:
            self.ready.append(Start(step.path))
            if held.fired < step.need:
                self.passed.add(step.path)

    async def _stop_running(self) -> None:
        """Stop what runs, as the job is stopped, and wait for its end; an end that is being stored is stored first."""
        if not self.running:
            return
        self.calls.stop(self.attempt.stop_reason)
        may_write = self.attempt.stop_reason is not StopReason.LEASE_LOST
        for task, start in self.running.items():
            if not (may_write and start.path in self.calls.leaving):
                task.cancel()
        await asyncio.gather(*self.running, return_exceptions=True)
        self.running.clear()

    async def _completion(self) -> Completion:
        job = self.attempt.job
        await self.saver.save_events()
        if self.ending is not None:
            self.moved.endings = self.saver.rest()
            state = JobState.SUCCEEDED if self.ending.state is RunState.SUCCEEDED else JobState.FAILED
            error = self.ending.error
            return Completion(job.id, job.attempt, state, error=error, effects=self.moved.effects(self.facts))
        if self.move_on:
            return Completion(job.id, job.attempt, JobState.SUCCEEDED, effects=await self._rest_as_effects())
        if self.left:
            return Completion(job.id, job.attempt, JobState.READY)
        delay = self._until_due()
        assert delay is not None, "a run has nothing to do and has not ended"
        return Completion(job.id, job.attempt, JobState.SCHEDULED, delay=timedelta(seconds=delay))

    async def _rest_as_effects(self) -> Effects:
        """Return what was not run as jobs that begin where it stood, and the sums of what is not counted to its end."""
        starts = [*self.left, *self.ready, *(start for _, start in self.due)]
        effects = Moved(endings=self.saver.rest(), starts=starts).effects(
            self.facts, level=Level.NODE, reason=self.move_on
        )
        open_sums = [held for held in self.sums.values() if held.count < held.step.total]
        jobs = tuple(self.calls.as_job(job) for job in effects.jobs)
        steps = self.calls.steps_of(jobs, await self.calls.fence.load())
        return replace(effects, jobs=jobs, steps=steps, arrivals=tuple(self._arrival(held) for held in open_sums))

    def _arrival(self, held: Sum) -> Arrival:
        step = held.step
        job = None if held.decided else self.facts.jobs([Start(step.path)])[0]
        return Arrival(step.path, step.total, step.need, job, held.count, held.fired)
