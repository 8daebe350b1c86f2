"""Calls and completions as JSON lines between a worker and its child processes."""

from __future__ import annotations

import json
from dataclasses import asdict
from datetime import timedelta
from typing import Any
from uuid import UUID

from headrace.model.job import ClaimedJob, Completion, JobError, JobState
from headrace.ports.executor import Call


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
    job["batch_id"] = None if job["batch_id"] is None else UUID(job["batch_id"])
    job["timeout"] = None if job["timeout"] is None else timedelta(seconds=job["timeout"])
    message["job"] = ClaimedJob(**job)
    message["session"] = UUID(message["session"])
    return message


def encode_completion(completion: Completion) -> bytes:
    """Return one line that ends a call."""
    message = asdict(completion)
    message["delay"] = completion.delay.total_seconds()
    return json.dumps({"completion": message}, default=str).encode() + b"\n"


def decode_completion(message: dict[str, Any]) -> Completion:
    """Return the completion of a decoded line."""
    fields = dict(message)
    fields["job_id"] = UUID(fields["job_id"])
    fields["batch_id"] = None if fields["batch_id"] is None else UUID(fields["batch_id"])
    fields["state"] = JobState(fields["state"])
    fields["delay"] = timedelta(seconds=fields["delay"])
    fields["error"] = None if fields["error"] is None else JobError(**fields["error"])
    return Completion(**fields)
