"""From settings to what runs workflows."""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

from headrace.clock import SystemClock
from headrace.engine.loops.blob_sweeper import BlobSweeper
from headrace.engine.loops.leadership import Leadership
from headrace.engine.loops.loop import Loop
from headrace.engine.loops.settler import Settler
from headrace.engine.values import Values
from headrace.engine.workflows.boards import RunNotes
from headrace.engine.workflows.facts import KnownRuns
from headrace.engine.workflows.means import Bounds, Means
from headrace.engine.workflows.service import RunService
from headrace.model.graph.levels import LevelSettings
from headrace.model.job import JobSpec
from headrace.ports.blob_store import BlobStore
from headrace.ports.run_board import RunBoard
from headrace.ports.stores import Stores
from headrace.runtime import Runtime
from headrace.settings import Settings
from headrace.wiring.farm import farms_out

if TYPE_CHECKING:
    from headrace.app import App


def open_means(settings: Settings, stores: Stores, blobs: BlobStore, stack: AsyncExitStack) -> Means:
    """Return what the jobs of runs work with; what has to be released goes on `stack`."""
    hybrid = settings.scheduler.hybrid
    bounds = Bounds(
        longest=hybrid.node_level_threshold,
        most_nodes=hybrid.workflow_level_threshold,
        fixed=hybrid.default_mode == "workflow_level",
    )
    known = KnownRuns(stores.runs, settings.scheduler.distributed.priority_strategy)
    board = _open_board(settings, stack)
    notes = RunNotes(board, stores.runs)
    stack.push_async_callback(notes.close)
    return Means(stores, Values(blobs, stores.runs.store_id), known, SystemClock(), bounds, board, notes)


def _open_board(settings: Settings, stack: AsyncExitStack) -> RunBoard | None:
    """Return the board on the server that holds hot state beside a PostgreSQL store, if one is named."""
    if not settings.limits.url or settings.queue.type in ("redis", "memory"):
        return None
    from headrace.stores.redis import make_run_board

    board = make_run_board(settings.limits.url, prefix=settings.queue.stream_prefix)
    stack.push_async_callback(board.close)
    return board


def run_loops(settings: Settings, runtime: Runtime, leadership: Leadership) -> list[Loop]:
    """Return the duties of a worker that are for runs."""
    means = runtime.means
    loops: list[Loop] = [Settler(means, settings.scheduler.distributed.dependency_check_interval)]
    if means.values.blobs is not None:
        loops.append(BlobSweeper(means.stores.runs, means.values.blobs, leadership, means.clock))
    return loops


def make_run_service(app: App) -> RunService:
    """Return what starts, repeats, cancels and signals runs of an open app."""
    hybrid, registry = app.settings.scheduler.hybrid, app.registry
    levels = LevelSettings(
        default_mode=hybrid.default_mode,
        most_nodes=hybrid.workflow_level_threshold,
        longest=hybrid.node_level_threshold,
    )

    def spec_of(name: str) -> JobSpec | None:
        task = registry.get(name)
        return None if task is None else app.node_spec_of(task)

    def alone(name: str) -> bool:
        task = registry.get(name)
        if task is None:
            return False
        rule = registry.queue_rules.get(task.spec.queue)
        gated = task.spec.gate is not None or (rule is not None and bool(rule.declared))
        farmed = farms_out(app.settings, task.spec.queue)
        return gated or farmed or task.spec.at_most_once or task.gather is not None

    return RunService(app.runtime.means, spec_of, levels, alone)
