"""How far a report is, stage by stage."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from headrace import NodeState, Run, RunState
from headrace.apps.report import stages
from headrace.apps.report.graph import CLASSIFY, EXTRACT, SUMMARIZE
from headrace.apps.report.job import Job

if TYPE_CHECKING:
    from headrace.engine.workflows.tree import TreeNode

StageStatus = Literal["pending", "running", "ok", "degraded", "failed"]
#: Parts of a hundred that stages are of the whole.
WEIGHTS = {
    stages.INGEST: 5, stages.TAGGING: 20, stages.STATS: 5, stages.DEFECTS: 45, stages.CLUSTERS: 15, stages.RENDER: 10,
}  # fmt: skip
#: The map whose entries are the units of a model stage.
_UNITS = {stages.TAGGING: CLASSIFY, stages.DEFECTS: EXTRACT, stages.CLUSTERS: SUMMARIZE}
_WHAT = {stages.TAGGING: "cases", stages.DEFECTS: "rows", stages.CLUSTERS: "clusters"}
_GOES_ON = (NodeState.RUNNING, NodeState.PARKED)
_ENTRY = re.compile(r"(.*/|)(\w+)\[\d+\]/\w+")


@dataclass(frozen=True, slots=True)
class StageProgress:
    """One stage. `completed` and `total` count questions to the model, of a stage that asks it."""

    stage: str
    status: StageStatus = "pending"
    percent: int = 0
    message: str = ""
    completed: int | None = None
    total: int | None = None


@dataclass(frozen=True, slots=True)
class ReportProgress:
    """A report: its stages, and how far all of it is."""

    job_id: str
    status: Literal["running", "ok", "degraded", "failed", "cancelled"]
    percent: int
    message: str
    stages: tuple[StageProgress, ...]
    #: When it ended, or, while it goes on, when it was looked at.
    updated_at: datetime | None = None
    #: Why it failed.
    error: str = ""


async def look_at(job: Job) -> ReportProgress:
    """Return how far a report is, as its last run has it."""
    view = await job.run.view()
    result = await _result(job.run) if view.state is RunState.SUCCEEDED else None
    told = await job.run.progress()
    found = tuple(_stage(name, told.nodes, view.state, result) for name in stages.STAGES)
    percent = sum(WEIGHTS[one.stage] * one.percent for one in found) // 100
    status = _status(view.state, result)
    message = _message(job.id, status, found, result)
    error = "" if view.error is None else view.error.message
    if status == "failed" and error:
        message = f"{error}; {message}"
    return ReportProgress(job.id, status, percent, message, found, view.finished_at or datetime.now(UTC), error)


async def _result(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = await run.result()
    return found


def _status(state: RunState, result: Mapping[str, Any] | None) -> Any:
    if result is not None:
        return result["status"]
    return {RunState.FAILED: "failed", RunState.CANCELLED: "cancelled"}.get(state, "running")


def _stage(name: str, nodes: Mapping[str, NodeState], run: RunState, result: Mapping[str, Any] | None) -> StageProgress:
    own, within = nodes.get(name), [path for path in nodes if path.startswith(f"{name}/")]
    completed, total = _units(name, nodes)
    if own is NodeState.SUCCESS:
        lacks = result is not None and any(one["stage"] == name for one in result["next_inputs"]["degraded"])
        status: StageStatus = "degraded" if lacks or _lacking(name, nodes) else "ok"
        return StageProgress(name, status, 100, _counts(name, nodes), completed, total)
    failed = own is NodeState.FAILED or (run.final and any(nodes[path] is NodeState.FAILED for path in within))
    if failed:
        message = f"failed; go on with --from {name}"
        return StageProgress(name, "failed", 0, message, completed, total)
    begun = own in _GOES_ON or any(nodes[path] is not NodeState.PENDING for path in within)
    if run.final or not begun:
        return StageProgress(name, completed=completed, total=total)
    percent = 100 * completed // total if completed is not None and total else 0
    return StageProgress(name, "running", min(percent, 99), _counts(name, nodes), completed, total)


def _lacking(name: str, nodes: Mapping[str, NodeState]) -> int:
    """Return how many questions of a stage ended without an answer."""
    return sum(state is NodeState.FAILED for state in _states(name, nodes))


def _units(name: str, nodes: Mapping[str, NodeState]) -> tuple[int | None, int | None]:
    """Return how many questions of a stage have ended, and how many there are so far; None of one that asks none."""
    if name not in _UNITS:
        return None, None
    states = _states(name, nodes)
    return sum(state.final for state in states), len(states)


def _states(name: str, nodes: Mapping[str, NodeState]) -> list[NodeState]:
    """Return the states of a stage's questions."""
    return [
        state
        for path, state in nodes.items()
        if path.startswith(f"{name}/") and (found := _ENTRY.fullmatch(path)) and found[2] == _UNITS.get(name)
    ]


def _counts(name: str, nodes: Mapping[str, NodeState]) -> str:
    completed, total = _units(name, nodes)
    without = _lacking(name, nodes)
    told = f"{completed}/{total} {_WHAT[name]} done" if total else ""
    return f"{told}, {without} without an answer" if without else told


def _message(job_id: str, status: str, found: tuple[StageProgress, ...], result: Mapping[str, Any] | None) -> str:
    if result is not None:
        lacking = "; ".join(result["warnings"])
        return f"{lacking}. Fill it with `headrace report resume {job_id} --out DIR`" if lacking else "complete"
    failed = next((one for one in found if one.status == "failed"), None)
    if failed is not None:
        return f"{failed.stage} failed; go on with `headrace report resume {job_id} --out DIR --from {failed.stage}`"
    running = [one.stage for one in found if one.status == "running"]
    return ", ".join(running) if status == "running" else status


def progress_document(progress: ReportProgress) -> dict[str, Any]:
    """Return progress as JSON."""
    return {
        "job_id": progress.job_id, "status": progress.status, "percent": progress.percent,
        "message": progress.message, "updated_at": _time(progress.updated_at), "error": progress.error,
        "stages": [
            {
                "stage": one.stage, "status": one.status, "percent": one.percent, "message": one.message,
                **({} if one.total is None else {"completed": one.completed, "total": one.total}),
            }
            for one in progress.stages
        ],
    }  # fmt: skip


def _time(when: datetime | None) -> str | None:
    return None if when is None else when.isoformat()


async def stage_results(job: Job) -> list[dict[str, Any]]:
    """Return what is kept of each stage: its status, artifacts, and when it began and ended."""
    tree = await job.run.tree()
    by_name = {node.path: node for node in tree.nodes}
    found = []
    for name in stages.STAGES:
        node = by_name[name]
        result = None if node.output is None else json.loads(node.output)
        status = {NodeState.SUCCESS: "ok", NodeState.FAILED: "failed"}.get(node.state, "pending")
        found.append(
            {
                "stage": name, "stage_status": status, "stage_started_at": _time(node.started_at),
                "stage_finished_at": _time(node.finished_at), "reused": _is_reused(node),
                "stage_artifacts": None if result is None else result["artifacts"],
                "metrics": None if result is None else result["metrics"],
                "warnings": [] if result is None else result["warnings"],
            }
        )  # fmt: skip
    return found


def _is_reused(node: TreeNode) -> bool:
    """Whether a stage is that of an earlier run: one that is a graph is, where all tasks within it are."""
    return node.reused if node.kind == "task" else all(map(_is_reused, node.children))
