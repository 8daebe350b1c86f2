"""Whether an error is the end of a job: then what the job stands for is told at once, and holds up nobody."""

from __future__ import annotations

from headrace import Context
from headrace.apps.memory.opening import RETRIES


def is_last(error: Exception, context: Context, queue: str) -> bool:
    """Whether a job of a queue is not tried again after this error: it had all its tries, or another is of no use."""
    return context.last_try or RETRIES[queue].decide(error, failures=1, random=0.0) is None
