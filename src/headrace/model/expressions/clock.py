"""The clock and the zone of an evaluation."""

from __future__ import annotations

from datetime import UTC, tzinfo

from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault
from headrace.model.expressions.moments import Moment


def zone_of(run: Run) -> tzinfo:
    """Return the zone in which dates without one are: that of the flow."""
    now = run.scope.now
    return UTC if now is None or now.tzinfo is None else now.tzinfo


def current(run: Run) -> Moment:
    """Return the instant of the evaluation (`$now`). Raises Fault where there is none."""
    now = run.scope.now
    if now is None:
        raise Fault("there is no clock here: $now and $today have no value")
    return Moment(now.replace(tzinfo=UTC) if now.tzinfo is None else now)


def midnight(run: Run) -> Moment:
    """Return the beginning of the day of the evaluation (`$today`)."""
    return Moment(current(run).at.replace(hour=0, minute=0, second=0, microsecond=0, fold=0))
