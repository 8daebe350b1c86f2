"""Hashes and texts of runs as the read models of the model."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from headrace.model.job import JobState
from headrace.model.run import (
    Level,
    LiveNode,
    NewRun,
    NodeEnding,
    NodeState,
    RunState,
    RunView,
    StoredWorkflow,
    Unsettled,
    WorkflowEntry,
)
from headrace.stores.redis.rows import decode_error, instant, parse_id


def run_fields(run: NewRun) -> list[str]:
    """Return names and values of the record of a new run, in turn."""
    facts = {
        "version": str(run.version),
        "level": run.level.value,
        "reason": run.reason,
        "input": run.input,
        "context": run.context,
        "rerun_of": None if run.rerun_of is None else run.rerun_of.hex,
        "rerun_from": run.rerun_from,
    }
    return [word for name, value in facts.items() if value is not None for word in (name, value)]


def run_view(run_id: str, row: Mapping[str, str]) -> RunView:
    """Return everything known of a run."""
    return RunView(
        id=parse_id(run_id),
        workflow=row["workflow"],
        version=int(row["version"]),
        snapshot=row["snapshot"],
        state=RunState(row["state"]),
        level=Level(row["level"]),
        reason=row["reason"],
        input=row["input"],
        context=row["context"],
        output=row.get("output"),
        error=decode_error(row.get("error")),
        key=row.get("key"),
        rerun_of=parse_id(row["rerun_of"]) if "rerun_of" in row else None,
        rerun_from=row.get("rerun_from"),
        created_at=instant(row["created_at"]),
        finished_at=instant(row["finished_at"]) if "finished_at" in row else None,
    )


def node_ending(path: str, stored: str) -> tuple[int, NodeEnding]:
    """Return how a node ended, of "NUMBER FINISHED_AT TEXT", with its place among the ends of its run."""
    number, finished_at, text = stored.split(" ", 2)
    facts: dict[str, Any] = json.loads(text)
    started_at = facts.get("started_at")
    return int(number), NodeEnding(
        path,
        NodeState(facts["state"]),
        output=facts.get("output"),
        port=facts.get("port", ""),
        error=decode_error(facts.get("error")),
        artifact=facts.get("artifact", ""),
        attempts=facts["attempts"],
        reused=facts["reused"],
        started_at=None if started_at is None else instant(str(started_at)),
        finished_at=instant(finished_at),
    )


def live_node(  # noqa: PLR0913 - a row
    job_id: str, node: str | None, state: str, queue: str, attempt: str | None, failures: str | None,
    started_at: str | None, run_at: str | None, parked_on: str | None,
) -> LiveNode:  # fmt: skip
    """Return a job of a run that is not final."""
    return LiveNode(
        parse_id(job_id),
        node,
        JobState(state),
        queue,
        int(attempt or 0),
        int(failures or 0),
        None if started_at is None else instant(started_at),
        None if run_at is None else instant(run_at),
        parked_on,
    )


def unsettled(  # noqa: PLR0913 - a row
    job_id: str, run_id: str, node: str | None, state: str, error: str | None, attempt: str | None
) -> Unsettled:
    """Return a job of a run that the store ended by itself."""
    return Unsettled(parse_id(job_id), parse_id(run_id), node, JobState(state), decode_error(error), int(attempt or 0))


def stored_workflow(  # noqa: PLR0913 - a row
    name: str, version: str, snapshot: str, graph: str, active: str, created_at: str
) -> StoredWorkflow:
    """Return a version of a workflow."""
    return StoredWorkflow(name, int(version), snapshot, graph, active == "1", instant(created_at))


def workflow_entry(name: str, version: str, snapshot: str, active: str, created_at: str) -> WorkflowEntry:
    """Return the latest version of a workflow, without its graph."""
    return WorkflowEntry(name, int(version), snapshot, active == "1", instant(created_at))


def run_of(text: str) -> tuple[UUID, str]:
    """Return run and node of "RUN NODE"; a run's own job has none."""
    run, _, node = text.partition(" ")
    return parse_id(run), node
