"""Usage: what the attempt's model calls used is kept with the job."""

from __future__ import annotations

import json
from typing import Any

from headrace.engine.attempt import Attempt, Proceed
from headrace.model.usage import UsageMeter, current_meter


async def meter_usage(attempt: Attempt, proceed: Proceed) -> Any:
    """Run the attempt under a meter of its own; store its reading, if any, on the attempt."""
    meter = UsageMeter(attempt.on_paid)
    token = current_meter.set(meter)
    try:
        return await proceed(attempt)
    finally:
        current_meter.reset(token)
        if meter.total.calls or meter.total.reused:
            attempt.usage = json.dumps(meter.to_json())
            attempt.progressed = True
