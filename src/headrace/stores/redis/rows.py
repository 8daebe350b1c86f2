"""Values of the model as scripts take and give them: ids as 32 hex digits, times as microseconds, JSON as text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from headrace.model.backlog import Alarm, QueueState
from headrace.model.job import Claim, ClaimedJob, JobError, JobSpec
from headrace.model.session import LeaderTerm, Role
from headrace.model.stats import Rescued

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)

to_json = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def micros(at: datetime) -> int:
    """Return an instant as microseconds since 1970.

    >>> micros(datetime(1970, 1, 1, 0, 0, 1, 5, tzinfo=UTC))
    1000005
    """
    return (at - _EPOCH) // _MICROSECOND


def span(length: timedelta) -> int:
    """Return a duration in microseconds."""
    return length // _MICROSECOND


@lru_cache(maxsize=64)
def instant(text: str) -> datetime:
    """Return the instant of a text of microseconds. Jobs that were inserted together share theirs."""
    return _EPOCH + timedelta(microseconds=int(text))


def leader_words(term: LeaderTerm | None) -> tuple[str, str]:
    """Return a term of leadership for scripts, which tell roles apart by it; None is an operator, who needs none.

    >>> leader_words(LeaderTerm(UUID(int=1), 3, Role.RELAY))
    ('00000000000000000000000000000001', 'relay:3')
    """
    if term is None:
        return "", ""
    return term.session.hex, str(term.term) if term.role is Role.ENGINE else f"{term.role}:{term.term}"


def parse_id(digits: str) -> UUID:
    """Return the id of 32 hex digits; ten times as fast as the constructor that takes any form of it."""
    return UUID(int=int(digits, 16))


@lru_cache(maxsize=1024)
def spec_fields(spec: JobSpec) -> tuple[str, ...]:
    """Return names and values of the fields of a job's hash that its specification sets, defaults left out."""
    default = JobSpec("")
    fields = ["task", spec.task, "queue", spec.queue]
    numbers = {"priority": int(spec.priority), "max_attempts": spec.max_attempts, "cost": spec.cost}
    for name, value in numbers.items():
        if value != getattr(default, name):
            fields += [name, repr(value)]
    if spec.timeout is not None:
        fields += ["timeout", str(span(spec.timeout))]
    if spec.at_most_once:
        fields += ["once", "1"]
    if spec.gate is not None:
        fields += ["gate", spec.gate.text]
    return tuple(fields)


def claim_words(claim: Claim) -> tuple[str | int, ...]:
    """Return the arguments of a claim behind its session."""
    at, job_id = ("", "") if claim.after is None else (str(micros(claim.after[0])), claim.after[1].hex)
    return (claim.queue, claim.limit, at, job_id)


def claimed_jobs(rows: Sequence[Sequence[Any]], queue: str) -> list[ClaimedJob]:
    """Return the rows of a claim as their worker sees them."""
    return [_claimed_job(queue, *row) for row in rows]


def _claimed_job(  # noqa: PLR0913 - a row
    queue: str, task: str, args: str, attempt: str, failures: str | None, crashes: str | None, attempts: str | None,
    timeout: str | None, cancel: str | None, batch: str | None, ordinal: str | None, sort_at: str, run: str | None,
    node: str | None, job_id: str,
) -> ClaimedJob:  # fmt: skip
    return ClaimedJob(
        parse_id(job_id),
        task,
        queue,
        args,
        int(attempt),
        int(failures or 0),
        int(crashes or 0),
        int(attempts or 4),
        None if timeout is None else timedelta(microseconds=int(timeout)),
        cancel is not None,
        None if batch is None else parse_id(batch),
        None if ordinal is None else int(ordinal),
        instant(sort_at),
        None if run is None else parse_id(run),
        node,
    )


def admitted_jobs(rows: Sequence[Sequence[Any]], queue: str) -> list[ClaimedJob]:
    """Return the rows of an admission: those of a claim, with why the job is refused as one more."""
    jobs = []
    for *row, refused in rows:
        job = _claimed_job(queue, *row)
        job.gated, job.refused = True, None if refused is None else _refusal(refused)
        jobs.append(job)
    return jobs


def _refusal(text: str) -> str:
    """Return the words for "UNTIL KEY": until when a breaker is open, 0 while it is being tried."""
    until, _, key = text.partition(" ")
    when = "is being tried" if until == "0" else f"tries again at {instant(until):%Y-%m-%d %H:%M:%S} UTC"
    return f"The circuit breaker {key!r} is open; it {when}."


def encode_error(error: JobError | None) -> str | None:
    """Return an error as JSON text. ASCII only: a message may hold characters that have no UTF-8."""
    if error is None:
        return None
    return json.dumps({"kind": error.kind, "message": error.message, "trace": error.trace}, separators=(",", ":"))


def decode_error(text: str | None) -> JobError | None:
    """Return the inverse of `encode_error`."""
    if text is None:
        return None
    data = json.loads(text)
    return JobError(data["kind"], data["message"], data.get("trace", ""))


def rescued(rows: Sequence[Sequence[str | None]]) -> Rescued:
    """Return what a sweep did; each row is (id, verdict, queue, batch)."""
    released = [row for row in rows if row[1] == "ready"]
    ended = [row for row in rows if row[1] != "ready"]
    return Rescued(
        released=tuple(parse_id(str(row[0])) for row in released),
        failed=tuple(parse_id(str(row[0])) for row in ended if row[1] == "failed"),
        queues=frozenset(str(row[2]) for row in released),
        batches=frozenset(parse_id(row[3]) for row in ended if row[3] is not None),
    )


def alarm_words(alarm: Alarm) -> tuple[str | int, str | int]:
    """Return size and age of an alarm as fields, empty for never."""
    return ("" if alarm.size is None else alarm.size, "" if alarm.age is None else span(alarm.age))


def queue_state(fields: Sequence[str]) -> QueueState:
    """Return what is set of a queue; names and values come in turn."""
    row = dict(zip(fields[::2], fields[1::2], strict=True))
    size, age = row.get("alarm_size"), row.get("alarm_age")
    return QueueState(
        paused="paused" in row,
        paused_reason=row.get("paused") or None,
        closed="closed" in row,
        alarm=Alarm(None if size is None else int(size), None if age is None else timedelta(microseconds=int(age))),
    )
