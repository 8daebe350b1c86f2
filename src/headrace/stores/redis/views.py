"""Hashes of the store as the read models of the model."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from headrace.model.batch import BatchItem, BatchOutcome, BatchState, BatchView, ClosePolicy
from headrace.model.dead_letter import DeadLetter
from headrace.model.job import AttemptRecord, JobError, JobState, JobView
from headrace.model.session import ProcessId, SessionView
from headrace.stores.redis.rows import decode_error, instant, parse_id


def fields(pairs: Sequence[str]) -> dict[str, str]:
    """Return names and values that come in turn as a mapping."""
    return dict(zip(pairs[::2], pairs[1::2], strict=True))


def job_view(job_id: str, row: Mapping[str, str], *, brief: bool = False) -> JobView:
    """Return everything known of a job; `brief`: of a row without arguments, without the trace of its error."""
    error = decode_error(row.get("error"))
    return JobView(
        id=parse_id(job_id),
        task=row["task"],
        queue=row["queue"],
        state=JobState(row["state"]),
        priority=int(row.get("priority", 5)),
        attempt=int(row.get("attempt", 0)),
        failures=int(row.get("failures", 0)),
        crashes=int(row.get("crashes", 0)),
        max_attempts=int(row.get("max_attempts", 4)),
        created_at=instant(row["created_at"]),
        run_at=_optional(row, "run_at", instant),
        started_at=_optional(row, "started_at", instant),
        finished_at=_optional(row, "finished_at", instant),
        session=_optional(row, "session", parse_id),
        args=None if brief else json.loads(row["args"]),
        result=_optional(row, "result", json.loads),
        error=replace(error, trace="") if brief and error else error,
        batch_id=_optional(row, "batch", parse_id),
        ordinal=_optional(row, "ordinal", int),
        retry_of=_optional(row, "retry_of", parse_id),
        cancel_requested="cancel" in row,
        usage=_optional(row, "usage", json.loads),
        run_id=_optional(row, "run", parse_id),
        node=row.get("node"),
    )


def dead_letter(  # noqa: PLR0913 - a row
    job_id: str, finished_at: str, task: str, queue: str, batch: str | None, error: str | None, run: str | None,
    node: str | None,
) -> DeadLetter:  # fmt: skip
    """Return a failed job as a dead letter; its trace is left out."""
    known = decode_error(error) or JobError("unknown", "")
    batch_id = None if batch is None else parse_id(batch)
    run_id = None if run is None else parse_id(run)
    at = instant(finished_at)
    return DeadLetter(parse_id(job_id), task, queue, at, replace(known, trace=""), batch_id, run_id, node)


def attempt_record(text: str) -> AttemptRecord:
    """Return an attempt that did not end its job."""
    row = json.loads(text)
    return AttemptRecord(
        attempt=int(row["attempt"]),
        outcome=row["outcome"],
        started_at=instant(str(row["started_at"])),
        finished_at=instant(str(row["finished_at"])),
        session=parse_id(row["session"]),
        error=decode_error(None if row["error"] is None else json.dumps(row["error"])),
    )


def final_attempt(job: JobView) -> AttemptRecord | None:
    """Return the record of the attempt that ended a job; None for one that is not final or ended while it waited."""
    if not job.state.final or job.session is None or job.finished_at is None:
        return None
    return AttemptRecord(job.attempt, job.state.value, job.started_at, job.finished_at, job.session, job.error)


def batch_view(batch_id: str, row: Mapping[str, str]) -> BatchView:
    """Return everything known of a batch."""
    return BatchView(
        id=parse_id(batch_id),
        key=row.get("key"),
        task=row["task"],
        queue=row["queue"],
        state=BatchState(row["state"]),
        outcome=_optional(row, "outcome", BatchOutcome),
        total=_optional(row, "total", int),
        round=int(row["round"]),
        policy=ClosePolicy(_optional(row, "max_failed", int)),
        created_at=instant(row["created_at"]),
        sealed_at=_optional(row, "sealed_at", instant),
        closed_at=_optional(row, "closed_at", instant),
        paused_at=_optional(row, "paused_at", instant),
        paused_reason=row.get("paused_reason") or None,
    )


def batch_item(row: Sequence[Any]) -> BatchItem:
    """Return a finished item of (commit, id, ordinal, state, result, error, usage, retried or nothing).

    Its cursor is its commit.
    """
    commit, job_id, ordinal, state, result, error, usage, retried_by = row
    return BatchItem(
        index=int(ordinal),
        status=JobState(state),
        job_id=parse_id(job_id),
        result=None if result is None else json.loads(result),
        error=decode_error(error),
        cost=None if usage is None else json.loads(usage),
        cursor=str(commit),
        retried=retried_by is not None,
    )


def session_view(row: Sequence[Any]) -> SessionView:
    """Return a session of (id, end of its lease, alive, running, names and values of its hash)."""
    session, expires_at, alive, running, pairs = row
    facts = fields(pairs)
    return SessionView(
        id=UUID(hex=session),
        hostname=facts["hostname"],
        process=ProcessId(facts["host"], int(facts["pid"]), int(facts["start_time"])),
        queues=json.loads(facts["queues"]),
        started_at=instant(facts["started_at"]),
        expires_at=instant(expires_at),
        alive=bool(alive),
        running=running,
        stats=json.loads(facts.get("stats", "{}")),
    )


def _optional(row: Mapping[str, str], name: str, read: Any) -> Any:
    text = row.get(name)
    return None if text is None else read(text)
