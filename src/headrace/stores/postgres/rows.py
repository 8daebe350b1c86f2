"""Rows as values of the model, and errors as JSON."""

from __future__ import annotations

import json
from typing import Any

from headrace.model.job import ClaimedJob, JobError


def claimed_job(row: Any) -> ClaimedJob:
    """Return a claimed row as its worker sees it; its columns come in the order of the fields."""
    return ClaimedJob(*tuple(row)[:12])


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
