"""One log line when a job starts and one when it ends, for whoever wants them (`headrace dev`): logger `headrace.jobs`.

Starts and good endings are INFO, failures for good are WARNING. Where INFO is off a job costs one look at the level.
"""

from __future__ import annotations

import logging
from typing import Any

from headrace.engine.attempt import Attempt, StopReason
from headrace.model.durations import format_duration
from headrace.model.job import Completion, JobState
from headrace.ports.clock import Clock

LOG = logging.getLogger("headrace.jobs")


def log_start(attempt: Attempt, clock: Clock) -> float | None:
    """Log that an attempt starts; return when, for `log_end`, or None when nobody listens."""
    if not LOG.isEnabledFor(logging.INFO):
        return None
    LOG.info("started", extra=_facts(attempt))
    return clock.monotonic()


def log_end(attempt: Attempt, completion: Completion, clock: Clock, started: float | None) -> None:
    """Log how an attempt ended; `started` is what `log_start` returned."""
    if completion.state is JobState.FAILED:
        LOG.warning("failed%s: %s", _duration(clock, started), _why(completion), extra=_facts(attempt))
    elif started is not None:
        LOG.info("%s", _ending(attempt, completion, _duration(clock, started)), extra=_facts(attempt))


def _facts(attempt: Attempt) -> dict[str, Any]:
    job = attempt.job
    return {"job_id": str(job.id), "task": job.task, "attempt": job.attempt}


def _ending(attempt: Attempt, completion: Completion, duration: str) -> str:
    match completion.state:
        case JobState.SCHEDULED if completion.error is None:
            return f"snoozed for {format_duration(completion.delay)}"
        case JobState.SCHEDULED:
            return f"failed{duration}, again in {format_duration(completion.delay)}: {_why(completion)}"
        case JobState.READY if attempt.stop_reason is StopReason.RELEASED:
            return f"released{duration}: the worker stops"
        case _:
            return f"{completion.state}{duration}"


def _duration(clock: Clock, started: float | None) -> str:
    return "" if started is None else f" in {clock.monotonic() - started:.2f} s"


def _why(completion: Completion) -> str:
    error = completion.error
    return "no error was recorded" if error is None else f"{error.kind}: {error.message}".partition("\n")[0]
