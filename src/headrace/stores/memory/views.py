"""Rows as the read models of the model."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from headrace.model.batch import BatchItem, BatchView
from headrace.model.dead_letter import DeadLetter, FailedAt
from headrace.model.job import AttemptRecord, JobError, JobView
from headrace.model.run import LiveNode, RunView, Unsettled
from headrace.model.session import SessionView
from headrace.stores.memory.rows import Batch, Finished, Job, Session
from headrace.stores.memory.runs import Run


def job_view(row: Job | Finished, *, brief: bool = False) -> JobView:
    """Return everything known of a job; `brief`: without arguments, result, usage and the trace of its error."""
    job = row.job if isinstance(row, Finished) else row
    ended = row if isinstance(row, Finished) else None
    told = None if brief else ended
    error = None if ended is None else ended.error
    return JobView(
        id=job.id,
        task=job.spec.task,
        queue=job.spec.queue,
        state=row.state,
        priority=job.spec.priority,
        attempt=job.attempt,
        failures=job.failures,
        crashes=job.crashes,
        max_attempts=job.spec.max_attempts,
        created_at=job.created_at,
        run_at=job.run_at,
        started_at=job.started_at,
        finished_at=None if ended is None else ended.finished_at,
        session=job.session,
        args=None if brief else json.loads(job.args),
        result=None if told is None else _parsed(told.result),
        error=replace(error, trace="") if brief and error else error,
        batch_id=job.batch_id,
        ordinal=job.ordinal,
        retry_of=job.retry_of,
        cancel_requested=job.cancel_requested,
        usage=None if told is None else _parsed(told.usage),
        run_id=job.run_id,
        node=job.node,
    )


def final_attempt(row: Finished) -> AttemptRecord | None:
    """Return the record of the attempt that ended a job; None for a job that ended while it waited."""
    job = row.job
    if job.session is None:
        return None
    return AttemptRecord(job.attempt, row.state.value, job.started_at, row.finished_at, job.session, row.error)


def failed_at(row: Finished) -> FailedAt:
    """Return the place of a failed job among dead letters."""
    return row.finished_at, row.job.id


def dead_letter(row: Finished) -> DeadLetter:
    """Return a failed job as a dead letter."""
    job, error = row.job, row.error or JobError("unknown", "")
    return DeadLetter(
        job.id,
        job.spec.task,
        job.spec.queue,
        row.finished_at,
        replace(error, trace=""),
        job.batch_id,
        job.run_id,
        job.node,
    )


def batch_view(batch: Batch) -> BatchView:
    """Return everything known of a batch."""
    new = batch.new
    return BatchView(
        id=new.id,
        key=new.key,
        task=new.spec.task,
        queue=new.spec.queue,
        state=batch.state,
        outcome=batch.outcome,
        total=batch.total,
        round=batch.round,
        policy=new.policy,
        created_at=batch.created_at,
        sealed_at=batch.sealed_at,
        closed_at=batch.closed_at,
        paused_at=batch.paused_at,
        paused_reason=batch.paused_reason,
    )


def batch_item(row: Finished, *, retried: bool) -> BatchItem:
    """Return a finished item; its cursor is the number of its commit."""
    assert row.job.ordinal is not None
    return BatchItem(
        index=row.job.ordinal,
        status=row.state,
        job_id=row.job.id,
        result=_parsed(row.result),
        error=row.error,
        cost=_parsed(row.usage),
        cursor=str(row.commit),
        retried=retried,
    )


def session_view(row: Session, *, alive: bool, running: int) -> SessionView:
    """Return everything known of a session."""
    new = row.new
    return SessionView(
        id=new.id,
        hostname=new.hostname,
        process=new.process,
        queues=dict(new.queues),
        started_at=row.started_at,
        expires_at=row.expires_at,
        alive=alive,
        running=running,
        stats=dict(row.stats),
    )


def run_view(run: Run) -> RunView:
    """Return everything known of a run but its nodes."""
    new = run.new
    return RunView(
        id=new.id,
        workflow=new.workflow,
        version=new.version,
        snapshot=new.snapshot,
        state=run.state,
        level=run.level,
        reason=run.reason,
        input=new.input,
        context=new.context,
        output=run.output,
        error=run.error,
        key=new.key,
        rerun_of=new.rerun_of,
        rerun_from=new.rerun_from,
        created_at=run.created_at,
        finished_at=run.finished_at,
    )


def live_node(job: Job) -> LiveNode:
    """Return a job of a run that is not final."""
    return LiveNode(
        job_id=job.id,
        node=job.node,
        state=job.state,
        queue=job.spec.queue,
        attempt=job.attempt,
        failures=job.failures,
        started_at=job.started_at,
        run_at=job.run_at,
        parked_on=job.parked_on,
    )


def unsettled(row: Finished) -> Unsettled:
    """Return a job of a run that ended without effects."""
    job = row.job
    assert job.run_id is not None
    return Unsettled(job.id, job.run_id, job.node, row.state, row.error, job.attempt)


def _parsed(text: str | None) -> Any:
    return None if text is None else json.loads(text)
