"""Calls and completions as JSON lines between a worker and its child processes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.event import Event, outgoing
from headrace.model.job import ClaimedJob, Completion, JobError, JobState, Park, RunInfo
from headrace.ports.executor import Call

#: What of a completion does not travel as it is.
_APART = frozenset({"effects", "events", "log"})


def encode_call(call: Call) -> bytes:
    """Return one line that a child can run."""
    job = asdict(call.job)
    del job["sort_at"]
    job["timeout"] = None if call.job.timeout is None else call.job.timeout.total_seconds()
    message = {"job": job, "session": call.session, "timeout": call.timeout, "target": call.target}
    return json.dumps(message, default=str).encode() + b"\n"


def decode_call(line: bytes) -> dict[str, Any]:
    """Return the message of `encode_call` with its job rebuilt."""
    message: dict[str, Any] = json.loads(line)
    job = message["job"]
    job["id"] = UUID(job["id"])
    for name in ("batch_id", "run_id"):
        job[name] = None if job[name] is None else UUID(job[name])
    if job["run"] is not None:
        job["run"] = RunInfo(**{**job["run"], "id": UUID(job["run"]["id"])})
    job["timeout"] = None if job["timeout"] is None else timedelta(seconds=job["timeout"])
    message["job"] = ClaimedJob(**job)
    message["session"] = UUID(message["session"])
    return message


def encode_completion(completion: Completion) -> bytes:
    """Return one line that ends a call."""
    # A child knows nothing of runs: effects are worked out where the worker is.
    message = {name: value for name, value in asdict(completion).items() if name not in _APART}
    message["events"] = [{"topic": one.topic, "event": asdict(one.event)} for one in completion.events if one.event]
    message["delay"] = completion.delay.total_seconds()
    park = completion.park
    if park is not None:
        message["park"] = {"key": park.key, "wait": None if park.wait is None else park.wait.total_seconds()}
    # Beside it, where a worker of the release before does not look: it takes no field that it does not know.
    log = {} if completion.log is None else {"log": completion.log}
    return json.dumps({"completion": message, **log}, default=str).encode() + b"\n"


def decode_completion(message: Mapping[str, Any]) -> Completion:
    """Return the completion of a decoded line that ends a call."""
    fields = {**message["completion"], "log": message.get("log")}
    fields["job_id"] = UUID(fields["job_id"])
    fields["batch_id"] = None if fields["batch_id"] is None else UUID(fields["batch_id"])
    fields["state"] = JobState(fields["state"])
    fields["delay"] = timedelta(seconds=fields["delay"])
    if fields["park"] is not None:
        wait = fields["park"]["wait"]
        fields["park"] = Park(fields["park"]["key"], None if wait is None else timedelta(seconds=wait))
    fields["error"] = None if fields["error"] is None else JobError(**fields["error"])
    fields["events"] = tuple(outgoing(Event(**one["event"]), topic=one["topic"]) for one in fields["events"])
    return Completion(**fields)
