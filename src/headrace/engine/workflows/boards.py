"""Statuses of runs from the board where one is configured, else from the store; and what keeps a board up to date.

Not guaranteed: that every change reaches the board. A process may die between its commit and the note; the board
forgets what it has of a run that goes on after a minute, and is then told anew.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable
from dataclasses import replace
from uuid import UUID

from headrace.engine.outage import Outage
from headrace.model.errors import StoreUnavailableError
from headrace.model.job import Completion, JobState
from headrace.model.run import Effects, NodeEnding, NodeState, RunChange, RunStatus, RunView
from headrace.ports.run_board import RunBoard
from headrace.ports.run_store import RunStore

LOG = logging.getLogger("headrace.runs")

#: Notes of one call, and notes that wait at most; beyond that the oldest are dropped.
NOTES_AT_ONCE, MOST_NOTES = 500, 10_000


class RunNotes:
    """Tells the board what has been committed, soon and all together; without a board, nobody."""

    def __init__(self, board: RunBoard | None, runs: RunStore | None = None) -> None:
        """`runs` says how runs ended that seem to have, where there is a board."""
        self._board, self._runs = board, runs
        self._pending: list[RunChange] = []
        self._task: asyncio.Task[None] | None = None
        self._outage = Outage(LOG, "statuses of runs are not noted")

    def note(self, completions: Iterable[Completion], run_of: dict[UUID, tuple[UUID, str]]) -> None:
        """Note what completions did that the store accepted; `run_of`: run and path of those that were parked."""
        if self._board is None:
            return
        for completion in completions:
            if completion.effects is not None:
                self._add(_change_of(completion.effects))
            elif completion.state is JobState.PARKED and completion.job_id in run_of:
                run_id, path = run_of[completion.job_id]
                key = None if completion.park is None else completion.park.key
                waits = {} if key is None else {path: key}
                self._add(RunChange(run_id, {path: NodeState.PARKED}, waits))

    def note_endings(self, run_id: UUID, endings: Iterable[NodeEnding]) -> None:
        """Note ends of nodes that have been recorded."""
        if self._board is not None:
            self._add(RunChange(run_id, _states(endings)))

    def _add(self, change: RunChange) -> None:
        self._pending.append(change)
        del self._pending[:-MOST_NOTES]
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._send(), name="headrace-run-notes")

    async def _send(self) -> None:
        assert self._board is not None
        while self._pending:
            part, self._pending = self._pending[:NOTES_AT_ONCE], self._pending[NOTES_AT_ONCE:]
            try:
                await self._board.note_changes(await self._as_stored(part))
            except StoreUnavailableError as error:
                self._outage.note(error)

    async def _as_stored(self, changes: list[RunChange]) -> list[RunChange]:
        """Leave out ends of runs that did not end so: what ended beside a cancel of its run does not end the run."""
        ended = [change.run_id for change in changes if change.state is not None]
        if not ended:
            return changes
        assert self._runs is not None
        views = await self._runs.final_runs(ended)
        states = {run_id: view.state for run_id, view in views.items()}
        return [
            change if change.state is states.get(change.run_id) else replace(change, state=None) for change in changes
        ]

    async def close(self) -> None:
        """Send what waits."""
        if self._task is not None:
            await asyncio.gather(self._task, return_exceptions=True)


def _change_of(effects: Effects) -> RunChange:
    started = {job.node: NodeState.RUNNING for job in effects.jobs if job.node and not job.node.endswith("/")}
    state = None if effects.ending is None else effects.ending.state
    return RunChange(effects.run_id, {**started, **_states(effects.endings)}, state=state)


def _states(endings: Iterable[NodeEnding]) -> dict[str, NodeState]:
    return {ending.path: ending.state for ending in endings if not ending.path.endswith("@")}


async def run_status(runs: RunStore, board: RunBoard | None, view: RunView) -> RunStatus:
    """Return how far a run is: from the board if it has the run, else from the store, and then the board has it."""
    if board is not None:
        try:
            found = await board.read_status(view.id)
        except StoreUnavailableError:
            return await stored_status(runs, view)
        if found is not None:
            return found
    status = await stored_status(runs, view)
    if board is not None:
        try:
            await board.put_status(view.id, status)
        except StoreUnavailableError as error:
            LOG.debug("a status is not put on the board: %s", error)
    return status


async def run_counts(runs: RunStore, board: RunBoard | None, view: RunView) -> dict[NodeState, int]:
    """Return how many paths of a run are in each state; of a board that has the run only its sums are read."""
    if board is not None:
        try:
            found = await board.read_counts(view.id)
        except StoreUnavailableError:
            return (await stored_status(runs, view)).counts
        if found is not None:
            return found
    return (await run_status(runs, board, view)).counts


async def stored_status(runs: RunStore, view: RunView) -> RunStatus:
    """Return how far a run is as the store has it."""
    # In this order: a node that ends in between is seen as running, never as not begun.
    live = [one for one in await runs.live_nodes(view.id) if one.node and not one.node.endswith("/")]
    nodes = {one.node or "": NodeState.PARKED if one.state is JobState.PARKED else NodeState.RUNNING for one in live}
    nodes |= _states(await runs.read_nodes(view.id))
    waits = {one.node or "": one.parked_on for one in live if one.parked_on}
    return RunStatus(view.state, nodes, {path: key for path, key in waits.items() if nodes[path] is NodeState.PARKED})
