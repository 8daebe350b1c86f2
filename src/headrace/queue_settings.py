"""`[limits]`, `[scaling]`, and `[queues.NAME]`: what is said of queues where the code is not to be changed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields
from datetime import timedelta
from typing import Any

from headrace.model.scale_values import ScalingRule


@dataclass(frozen=True, slots=True)
class LimitsSettings:
    """`[limits]`: where rate limits are counted."""

    #: a Redis server, redis://…, that counts rate limits beside the store; empty: the store does
    url: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class ScalingSettings:
    """`[scaling]`: how many workers `headrace queue scale` wants for a queue; `[queues.NAME]` may differ."""

    #: never fewer; with 0 a queue of which nothing runs or waits wants none
    min_workers: int = 1
    #: never more
    max_workers: int = 10
    #: in which time the jobs that could start should be done
    drain_within: timedelta = timedelta(seconds=60)


#: Keys of `[queues.NAME]` that are none of `App.queue`: they are for whoever runs the workers.
_OF_OPERATION = ("executor", "min_workers", "max_workers", "drain_within")


@dataclass(frozen=True, slots=True)
class QueueTable:
    """`[queues.NAME]`: one queue; it wins over `app.queue(…)`, and HEADRACE_QUEUES, JSON by their names, over it."""

    #: how many of its jobs run at once over all workers
    concurrency: int | None = None
    #: how many of its jobs start per time over all workers, such as "30/m"
    rate_limit: str | None = None
    #: how many may start at once after a pause; unless given, one second's worth, at least 1
    burst: float | None = None
    #: whose share jobs without a fair key use: "key" (one together) or "batch" (each batch its own)
    fair: str | None = None
    #: how many of its jobs may wait
    max_waiting: int | None = None
    #: what an enqueue into the full queue does: "refuse" (unless given) or "wait"
    on_full: str | None = None
    #: how long it waits for room; unless given, 60 s
    wait_timeout: timedelta | None = None
    #: from how many ready jobs on its backlog is an alarm
    alarm_size: int | None = None
    #: from which age of the oldest ready job on its backlog is an alarm
    alarm_age: timedelta | None = None
    #: most slots of a worker for it: they grow and shrink with the jobs that could start; unless given, they are fixed
    max_slots: int | None = None
    #: fewest slots; unless given, 1
    min_slots: int | None = None
    #: slots to begin with; unless given, as many as a worker would have otherwise, within the bounds
    start_slots: int | None = None
    #: slots grow by half while more jobs than these could start, for each worker; unless given, 1000
    grow_above: int | None = None
    #: unused slots go while fewer jobs than these could start, for each worker; unless given, 100
    shrink_below: int | None = None
    #: where its handlers run, "local", "celery" or "ray"; unless given, as `[worker] executor` says
    executor: str | None = None
    #: fewest workers of the scale signal; unless given, those of `[scaling]`
    min_workers: int | None = None
    #: most workers of the scale signal; unless given, those of `[scaling]`
    max_workers: int | None = None
    #: in which time its jobs that could start should be done; unless given, that of `[scaling]`
    drain_within: timedelta | None = None

    def options(self) -> dict[str, Any]:
        """Return what is given, as `QueueRule.parse` takes it."""
        given = {item.name: getattr(self, item.name) for item in fields(self) if item.name not in _OF_OPERATION}
        return {name: value for name, value in given.items() if value is not None}

    def scaling(self, usual: ScalingSettings) -> ScalingRule:
        """Return the rule of its scale signal, by what is given here and else is usual. Raises InvalidInputError."""
        given = {item.name: getattr(self, item.name) for item in fields(ScalingSettings)}
        return ScalingRule.parse(**asdict(usual) | {name: value for name, value in given.items() if value is not None})
