"""What is declared of a queue: how many of its jobs run at once and start per time, and whose shares they use."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from enum import StrEnum
from typing import Literal, TypedDict, Unpack
from uuid import UUID

from headrace.model.backlog import NO_ALARM, Alarm, Bound, OnFull
from headrace.model.elastic import ElasticSlots
from headrace.model.errors import InvalidInputError
from headrace.model.limits import Declared, Gate, Rate, queue_cap
from headrace.model.names import check_name
from headrace.model.numbers import check_whole

#: Options that go with `max_slots`.
ELASTIC: tuple[Literal["min_slots", "start_slots", "grow_above", "shrink_below"], ...] = (
    "min_slots", "start_slots", "grow_above", "shrink_below",
)  # fmt: skip


class Fair(StrEnum):
    """Whose share of a queue a job uses that names no fair key."""

    #: one that all such jobs have together
    KEY = "key"
    #: that of its batch: each submit is a share of its own
    BATCH = "batch"


class QueueOptions(TypedDict, total=False):
    """Options of `App.queue`; `[queues.NAME]` in headrace.toml has the same and wins."""

    #: How many of its jobs run at once over all workers; default: no cap, only the workers' slots.
    concurrency: int
    #: How many of its jobs start per time over all workers, such as "30/m"; default: no limit.
    rate_limit: str | Rate
    #: How many may start at once after a pause; default: one second's worth, at least 1.
    burst: float
    #: Whose share jobs without a fair key use: "key" (one together) or "batch" (each batch its own); default "key".
    fair: Literal["key", "batch"]
    #: How many of its jobs may wait; default: any number.
    max_waiting: int
    #: What an enqueue into the full queue does: "refuse" or "wait"; default "refuse".
    on_full: Literal["refuse", "wait"]
    #: How long it waits for room with "wait"; default 60 s.
    wait_timeout: float | str | timedelta
    #: From how many ready jobs on its backlog is an alarm; default: never.
    alarm_size: int
    #: From which age of the oldest ready job on its backlog is an alarm; default: never.
    alarm_age: float | str | timedelta
    #: The most slots of a worker for it, which then grow and shrink with what could start; default: they are fixed.
    max_slots: int
    #: The fewest slots; default 1.
    min_slots: int
    #: The slots to begin with; default: as many as a worker would have otherwise, within the bounds.
    start_slots: int
    #: From more jobs than these that could start, for each worker, slots grow; default 1,000.
    grow_above: int
    #: With fewer jobs than these that could start, for each worker, unused slots go; default 100.
    shrink_below: int


@dataclass(frozen=True, slots=True)
class QueueRule:
    """One declared queue.

    `concurrency` is a cap over all workers, apart from the slots that each of them has; `rate` is a bucket that every
    job of the queue takes one unit from. None: no limit.

    >>> QueueRule("llm", concurrency=20, rate=Rate.parse("30/m")).declared.caps
    {'queue:llm': 20}
    """

    name: str
    concurrency: int | None = None
    rate: Rate | None = None
    fair: Fair = Fair.KEY
    #: How many of its jobs may wait; None: any number.
    bound: Bound | None = None
    #: From when its backlog is an alarm.
    alarm: Alarm = NO_ALARM
    #: How its slots grow and shrink; None: they are fixed.
    elastic: ElasticSlots | None = None

    def __post_init__(self) -> None:
        check_name("queue", self.name)
        if self.concurrency is not None:
            check_cap(self.concurrency, field=f"concurrency of queue {self.name}")

    @classmethod
    def parse(cls, name: str, **options: Unpack[QueueOptions]) -> QueueRule:
        """Return the rule of checked options. Raises InvalidInputError naming the field.

        >>> QueueRule.parse("llm", rate_limit="30/m", fair="batch").rate
        Rate(per_second=0.5, burst=1.0)
        """
        known = QueueOptions.__annotations__
        for option in options:
            if option not in known:
                raise InvalidInputError("queue option", f"must be among {', '.join(known)}", option)
        rate, most = options.get("rate_limit"), options.get("max_waiting")
        waiting = {key: options[key] for key in ("on_full", "wait_timeout") if key in options}
        if most is None and waiting:
            raise InvalidInputError("max_waiting", f"must be given where {' and '.join(waiting)} is", None)
        if "wait_timeout" in waiting and waiting.get("on_full", OnFull.REFUSE) == OnFull.REFUSE:
            raise InvalidInputError("wait_timeout", 'goes with on_full="wait"', waiting["wait_timeout"])
        if rate is None and "burst" in options:
            raise InvalidInputError("rate_limit", "must be given where burst is", None)
        return cls(
            name,
            concurrency=options.get("concurrency"),
            rate=None if rate is None else Rate.parse(rate, burst=options.get("burst"), field="rate_limit"),
            fair=parse_fair(options.get("fair", Fair.KEY)),
            bound=None if most is None else Bound.parse(most, **waiting),
            alarm=Alarm.parse(options.get("alarm_size"), options.get("alarm_age")),
            elastic=_elastic(options),
        )

    @property
    def declared(self) -> Declared:
        """The limits it declares."""
        key = queue_cap(self.name)
        return Declared(
            caps={} if self.concurrency is None else {key: self.concurrency},
            rates={} if self.rate is None else {key: self.rate},
        )

    def fair_gate(self, gate: Gate | None, batch_id: UUID) -> Gate | None:
        """Return the gate of a batch's jobs: with `Fair.BATCH` they share by batch unless they name a fair key."""
        if self.fair is not Fair.BATCH or (gate is not None and gate.fair_key is not None):
            return gate
        return replace(gate or Gate(), fair_key=f"batch:{batch_id}")


def _elastic(options: QueueOptions) -> ElasticSlots | None:
    given = {name: options[name] for name in ELASTIC if name in options}
    if "max_slots" in options:
        return ElasticSlots.parse(options["max_slots"], **given)
    if given:
        raise InvalidInputError("max_slots", f"must be given where {' and '.join(given)} is", None)
    return None


def check_cap(value: object, *, field: str = "concurrency", least: int = 1) -> int:
    """Return a number of jobs that may run at once, at most 1,000,000. Raises InvalidInputError."""
    return check_whole(field, value, least, 1_000_000)


def parse_fair(value: object, *, field: str = "fair") -> Fair:
    """Return whose shares a queue has. Raises InvalidInputError."""
    try:
        return Fair(str(value))
    except ValueError:
        raise InvalidInputError(field, 'must be "key" or "batch"', value) from None
