"""Usage: what the attempt's model calls used is kept with the job, and they know for whom they are made."""

from __future__ import annotations

import json
from typing import Any

from headrace.engine.attempt import Attempt, Proceed
from headrace.model.calls import Origin, current_origin
from headrace.model.job import ClaimedJob, Completion
from headrace.model.usage import UsageMeter, current_meter


def _origin(job: ClaimedJob) -> Origin:
    return Origin(job.id, job.batch_id, job.run_id, node=job.node if job.run is None else job.run.node)


async def meter_usage(attempt: Attempt, proceed: Proceed) -> Any:
    """Run the attempt under a meter of its own; store its reading, if any, on the attempt."""
    meter = UsageMeter(attempt.on_paid)
    metered = current_meter.set(meter)
    named = current_origin.set(_origin(attempt.job))
    try:
        ending = await proceed(attempt)
    finally:
        current_origin.reset(named)
        current_meter.reset(metered)
        if meter.total.calls or meter.total.reused:
            attempt.usage = json.dumps(meter.to_json())
            attempt.progressed = True
    if isinstance(ending, Completion) and ending.usage is None:
        # Of a run's own job, which knows how it ended before all of it is counted.
        ending.usage = attempt.usage
    return ending
