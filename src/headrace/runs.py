"""A handle on one run of a workflow."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headrace.engine.workflows.boards import run_counts, run_status
from headrace.engine.workflows.service import StartOptions
from headrace.engine.workflows.tree import RunTree, read_tree
from headrace.model.durations import parse_duration
from headrace.model.errors import (
    HeadraceError,
    InvalidInputError,
    NotFoundError,
    ResultTimeoutError,
    RunCancelledError,
    RunFailedError,
)
from headrace.model.job import CancelAnswer, JobState
from headrace.model.priority import parse_priority
from headrace.model.run import NodeState, RunState, RunStatus, RunView

if TYPE_CHECKING:
    from headrace.app import App
    from headrace.ports.stores import Stores

LOG = logging.getLogger("headrace.runs")

FIRST_PAUSE, LONGEST_PAUSE = 0.02, 0.5
#: `result()` says so when jobs wait this long for a worker that is not there.
WORKER_WARNING_SECONDS = 2.0


def start_options(  # noqa: PLR0913 - what a start takes
    key: str | None, user_id: str | None, correlation_id: str | None, metadata: Any, webhook: str | None = None,
    priority: Any = None,
) -> StartOptions:  # fmt: skip
    """Return checked options of a start. Raises InvalidInputError."""
    for field, value in (("user_id", user_id), ("correlation_id", correlation_id)):
        if value is not None and not isinstance(value, str):
            raise InvalidInputError(field, "must be a text, or None", value)
    if metadata is not None and not isinstance(metadata, Mapping):
        raise InvalidInputError("metadata", "must be a mapping of names to JSON data, or None", metadata)
    for name in metadata or {}:
        if not isinstance(name, str):
            raise InvalidInputError("metadata", "must have texts as names", name)
    number = None if priority is None else parse_priority(priority)
    return StartOptions(key, user_id, correlation_id, dict(metadata or {}), webhook, priority=number)


class Run:
    """One durable run: wait for it, look at it, cancel it, repeat it.

    >>> from headrace import App, chain
    >>> app = App("memory://")
    >>> @app.task
    ... async def double(number: int) -> int:
    ...     return 2 * number
    >>> twice = app.workflow("twice", chain(double.s(), double.s()))
    >>> async def main() -> None:
    ...     async with app.worker():
    ...         run = await app.start(twice, 3)
    ...         print(await run.result())
    >>> asyncio.run(main())
    12
    """

    def __init__(self, app: App, run_id: UUID) -> None:
        self._app = app
        self.id = run_id

    def __repr__(self) -> str:
        return f"Run({self.id})"

    async def view(self) -> RunView:
        """Return everything known of the run but its nodes. Raises NotFoundError."""
        return await self._app.run_service.get(self.id)

    async def status(self) -> RunState:
        """Return where the run stands now. Raises NotFoundError."""
        return (await self.view()).state

    async def progress(self) -> RunStatus:
        """Return how far the run is: states by path, how many of each, and what waits for which signal.

        Cheap to ask often where `[limits] url` names a Redis server, and then perhaps a moment late. Raises
        NotFoundError.
        """
        means = self._app.runtime.means
        return await run_status(means.stores.runs, means.board, await self.view())

    async def counts(self) -> dict[NodeState, int]:
        """Return how many nodes and entries are in each state; cheaper than `progress` for runs of thousands."""
        means = self._app.runtime.means
        return await run_counts(means.stores.runs, means.board, await self.view())

    async def tree(self) -> RunTree:
        """Return the run with its nodes: states, times, attempts and errors. Raises NotFoundError."""
        means = self._app.runtime.means
        return await read_tree(means, await self.view())

    async def result(self, timeout: float | str | timedelta | None = None) -> Any:
        """Wait for the run and return its output; the log says when no live worker is there for it.

        `timeout` in seconds or as "30s"; None waits without end. Raises RunFailedError with the run's error,
        RunCancelledError, ResultTimeoutError (the run goes on), NotFoundError.
        """
        seconds = None if timeout is None else parse_duration(timeout, field="timeout").total_seconds()
        try:
            async with asyncio.timeout(seconds) as limit:
                view = await self._final()
        except TimeoutError:
            if not limit.expired():
                raise
            raise ResultTimeoutError(
                f"run {self.id} did not end within {seconds:g} s; it goes on. Wait longer, or see "
                f"`headrace run show {self.id}`"
            ) from None
        if view.state is RunState.SUCCEEDED:
            return None if view.output is None else await self._app.runtime.means.values.load(view.output)
        why = f"{view.error.kind}: {view.error.message}" if view.error else "see `headrace run show` for its nodes"
        kind = RunCancelledError if view.state is RunState.CANCELLED else RunFailedError
        raise kind(f"run {self.id} ({view.workflow}) {view.state}: {why}")

    async def _final(self) -> RunView:
        runtime, pause = self._app.runtime, FIRST_PAUSE
        loop = asyncio.get_running_loop()
        patience = _Patience(runtime.stores, self.id)
        while True:
            mark, began = runtime.waiters.mark, loop.time()
            found = await runtime.stores.runs.final_runs([self.id])
            if self.id in found:
                return found[self.id]
            await patience.look()
            if pause == LONGEST_PAUSE and not await runtime.stores.runs.known_runs([self.id]):
                raise NotFoundError(f"no run {self.id}; it may have been pruned, see [recovery]")
            await runtime.waiters.change(at_most=pause, since=mark, looked=loop.time() - began)
            pause = min(pause * 1.5, LONGEST_PAUSE)

    async def context(self) -> dict[str, Any]:
        """Return what its starter gave along: user_id, correlation_id, metadata. Raises NotFoundError."""
        stored: dict[str, Any] = json.loads((await self.view()).context)
        return {name: stored.get(name) for name in ("user_id", "correlation_id", "metadata")}

    async def cancel(self) -> CancelAnswer:
        """Cancel the run: what waits ends at once, what runs is asked to stop. Raises NotFoundError."""
        return await self._app.run_service.cancel(self.id)

    async def rerun(self, from_node: str | None = None, *, key: str | None = None) -> Run:
        """Run the graph once more on the same input, once this run has ended, and return the new run.

        Nodes that are given what they were given here keep their output. From `from_node` on they run again, and what
        is behind it where its input has changed. `key`: idempotency key, unique per workflow: asked again for the same
        it is the same run. Raises NotFoundError, InvalidInputError, ConflictError.
        """
        return Run(self._app, await self._app.run_service.rerun(self.id, from_node, key=key))


class _Patience:
    """Warns once when jobs of a run that is waited for could start and no live worker serves their queues."""

    def __init__(self, stores: Stores, run_id: UUID) -> None:
        self._stores, self._run_id = stores, run_id
        self._began, self._next, self._warned = monotonic(), WORKER_WARNING_SECONDS, False

    async def look(self) -> None:
        """Look whether it is time to; each look comes after twice the time of the one before."""
        if self._warned or monotonic() - self._began < self._next:
            return
        self._next *= 2
        try:
            ready = {
                job.queue for job in await self._stores.runs.live_nodes(self._run_id) if job.state is JobState.READY
            }
            sessions = await self._stores.inspect.list_sessions() if ready else []
        except HeadraceError:
            return  # who waits will learn it by their own look
        unserved = sorted(ready - {queue for session in sessions if session.alive for queue in session.queues})
        if unserved:
            self._warned = True
            LOG.warning(
                "run %s waits, for no live worker serves %s: start one of an app that has workflows, with `headrace "
                "worker MODULE:app` or `async with app.worker():`", self._run_id, ", ".join(map(repr, unserved)),
            )  # fmt: skip
