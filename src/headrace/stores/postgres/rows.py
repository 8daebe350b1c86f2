"""Rows as values of the model, and errors as JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from operator import itemgetter
from typing import Any

from headrace.model.batch import BatchItem, BatchOutcome, BatchState, BatchView, ClosePolicy
from headrace.model.dead_letter import DeadLetter
from headrace.model.job import AttemptRecord, Claim, ClaimedJob, Completion, JobError, JobState, JobView
from headrace.model.priority import HEAD_START_SECONDS
from headrace.model.run import Level, NodeEnding, NodeState, RunState, RunView
from headrace.model.session import ProcessId, SessionView

#: The head start of each priority, indexed by its number: a parameter of statements that make jobs ready.
HEAD_STARTS = [timedelta(seconds=seconds) for seconds in HEAD_START_SECONDS]
#: Rates of queues are counted over this time.
RATE_WINDOW = timedelta(minutes=1)


_claim_order = itemgetter("sort_at", "id")
_place = itemgetter("place")


def claimed_jobs(rows: Sequence[Any]) -> list[ClaimedJob]:
    """Return claimed rows as their worker sees them, in claim order: UPDATE … RETURNING gives none.

    Their columns come in the order of the fields.
    """
    return [ClaimedJob(*tuple(row)[:15]) for row in sorted(rows, key=_claim_order)]


def admitted_jobs(rows: Sequence[Any]) -> list[ClaimedJob]:
    """Return admitted rows as their worker sees them, in the order in which they were admitted."""
    jobs = []
    for row in sorted(rows, key=_place):
        job = ClaimedJob(*tuple(row)[:13])
        job.run_id, job.node = row["run_id"], row["node"]
        job.gated, job.refused = True, _refused(row)
        jobs.append(job)
    return jobs


def held_jobs(rows: Sequence[Any]) -> list[ClaimedJob]:
    """Return rows that a session holds, in claim order."""
    jobs = claimed_jobs(rows)
    for job, row in zip(jobs, sorted(rows, key=_claim_order), strict=True):
        job.gated, job.refused = bool(row["gated"]), _refused(row)
    return jobs


def _refused(row: Any) -> str | None:
    """Say why a job behind an open breaker is failed; without a time its probe is under way."""
    if row["refused_by"] is None:
        return None
    when = f"tries again at {row['again_at']:%Y-%m-%d %H:%M:%S} UTC" if row["again_at"] else "is being tried"
    return f"The circuit breaker {row['refused_by']!r} is open; it {when}."


def claim_values(claim: Claim) -> dict[str, Any]:
    """Return the parameters of a claim without caps, but for its session."""
    after_at, after_id = claim.after or (None, None)
    return {"queue": claim.queue, "limit": claim.limit, "after_at": after_at, "after_id": after_id}


def encode_ending(completion: Completion) -> str:
    """Return what `finish_jobs` has to know of an ending that is no plain success, as JSON text."""
    error, usage = encode_error(completion.error), completion.usage
    facts = {"state": completion.state, "failures": int(completion.charged), "crashes": int(completion.lone_crash)}
    texts = {name: text for name, text in (("error", error), ("usage", usage)) if text is not None}
    parts = [f'"{name}":{json.dumps(value)}' for name, value in facts.items()]
    return "{" + ",".join(parts + [f'"{name}":{text}' for name, text in texts.items()]) + "}"


def encode_error(error: JobError | None) -> str | None:
    """Return an error as JSON text. ASCII only: a message may hold characters that the database refuses."""
    if error is None:
        return None
    return json.dumps({"kind": error.kind, "message": error.message, "trace": error.trace}, separators=(",", ":"))


def decode_error(text: str | None) -> JobError | None:
    """Return the inverse of `encode_error`."""
    if text is None:
        return None
    data = json.loads(text)
    return JobError(data["kind"], data["message"], data.get("trace", ""))


def decode_json(text: str | None) -> Any:
    """Return the value of a JSON column."""
    return None if text is None else json.loads(text)


def job_view(row: Any, *, brief: bool = False) -> JobView:
    """Return everything known of a job; `brief`: without the trace of its error."""
    values = dict(row)
    error = decode_error(values["error"])
    return JobView(
        **{
            **values,
            "state": JobState(values["state"]),
            "args": decode_json(values["args"]),
            "result": decode_json(values["result"]),
            "error": replace(error, trace="") if brief and error else error,
            "usage": decode_json(values["usage"]),
        }
    )


def dead_letter(row: Any) -> DeadLetter:
    """Return a failed job as a dead letter."""
    error = decode_error(row["error"]) or JobError("unknown", "")
    return DeadLetter(
        row["id"], row["task"], row["queue"], row["finished_at"], replace(error, trace=""), row["batch_id"],
        row["run_id"], row["node"],
    )  # fmt: skip


def attempt_record(row: Any) -> AttemptRecord:
    """Return one ended attempt."""
    values = dict(row)
    return AttemptRecord(**{**values, "error": decode_error(values["error"])})


def batch_view(row: Any) -> BatchView:
    """Return everything known of a batch."""
    values = dict(row)
    policy = ClosePolicy(values.pop("max_failed"))
    state, outcome = BatchState(values.pop("state")), values.pop("outcome")
    return BatchView(state=state, outcome=BatchOutcome(outcome) if outcome else None, policy=policy, **values)


def batch_item(row: Any, cursor: str) -> BatchItem:
    """Return a finished item."""
    return BatchItem(
        index=row["ordinal"],
        status=JobState(row["state"]),
        job_id=row["id"],
        result=decode_json(row["result"]),
        error=decode_error(row["error"]),
        cost=decode_json(row["usage"]),
        cursor=cursor,
        retried=row["retried"],
    )


def node_ending(row: Any) -> NodeEnding:
    """Return how a node of a run ended."""
    values = dict(row)
    return NodeEnding(**{**values, "state": NodeState(values["state"]), "error": decode_error(values["error"])})


def run_view(row: Any) -> RunView:
    """Return everything known of a run but its nodes."""
    values = dict(row)
    state, level = RunState(values["state"]), Level(values["level"])
    return RunView(**{**values, "state": state, "level": level, "error": decode_error(values["error"])})


def session_view(row: Any) -> SessionView:
    """Return everything known of a session."""
    return SessionView(
        id=row["id"],
        hostname=row["hostname"],
        process=ProcessId(row["host"], row["pid"], row["start_time"]),
        queues=json.loads(row["queues"]),
        started_at=row["started_at"],
        expires_at=row["expires_at"],
        alive=row["alive"],
        running=row["running"],
        stats=json.loads(row["stats"]),
    )
