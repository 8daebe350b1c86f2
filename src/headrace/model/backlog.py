"""The backlog of a queue: how many jobs may wait, when that is an alarm, and what is stored of it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from headrace.model.durations import format_duration, parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.numbers import check_whole

#: An alarm is over once size and age have fallen to this share of their thresholds: one that hovers rings once.
CLEAR_AT = 0.8
MAX_WAITING = 100_000_000


class OnFull(StrEnum):
    """What happens to whoever enqueues into a full queue."""

    #: QueueFullError at once
    REFUSE = "refuse"
    #: the call waits for room, then QueueFullError
    WAIT = "wait"


@dataclass(frozen=True, slots=True)
class Bound:
    """How many jobs of a queue may wait, ready and scheduled ones together."""

    max_waiting: int
    on_full: OnFull = OnFull.REFUSE
    #: How long a call waits for room with `OnFull.WAIT`.
    wait_timeout: timedelta = timedelta(seconds=60)

    @classmethod
    def parse(
        cls, max_waiting: object, on_full: object = OnFull.REFUSE, wait_timeout: float | str | timedelta = "60s"
    ) -> Bound:
        """Return the checked bound. Raises InvalidInputError naming the field.

        >>> Bound.parse(10_000, "wait").on_full.value
        'wait'
        """
        most = check_whole("max_waiting", max_waiting, most=MAX_WAITING)
        if on_full not in list(OnFull):
            raise InvalidInputError("on_full", 'must be "refuse" or "wait"', on_full)
        timeout = parse_duration(wait_timeout, field="wait_timeout")
        if timeout <= timedelta():
            raise InvalidInputError("wait_timeout", "must be longer than zero", wait_timeout)
        return cls(most, OnFull(str(on_full)), timeout)


@dataclass(frozen=True, slots=True)
class Alarm:
    """From when a backlog is an alarm: so many ready jobs, or one that has been ready so long. None: never."""

    size: int | None = None
    age: timedelta | None = None

    def __bool__(self) -> bool:
        return self.size is not None or self.age is not None

    def __str__(self) -> str:
        size = None if self.size is None else f"{self.size} jobs"
        age = None if self.age is None else format_duration(self.age)
        return " or ".join(part for part in (size, age) if part is not None)

    @classmethod
    def parse(cls, size: object = None, age: float | str | timedelta | None = None) -> Alarm:
        """Return the checked alarm. Raises InvalidInputError naming the field.

        >>> Alarm.parse(1_000, "5m").age
        datetime.timedelta(seconds=300)
        """
        most = None if size is None else check_whole("alarm_size", size, most=MAX_WAITING)
        oldest = None if age is None else parse_duration(age, field="alarm_age")
        if oldest is not None and oldest <= timedelta():
            raise InvalidInputError("alarm_age", "must be longer than zero", age)
        return cls(most, oldest)

    def rings(self, size: int, age: timedelta | None, *, before: bool = False) -> bool:
        """Return whether a backlog is an alarm; one that was (`before`) stays so down to 80 % of the thresholds.

        >>> alarm = Alarm(size=100)
        >>> alarm.rings(90, None), alarm.rings(90, None, before=True), alarm.rings(80, None, before=True)
        (False, True, False)
        """
        if before:
            large = self.size is not None and size > self.size * CLEAR_AT
            return large or (self.age is not None and age is not None and age > self.age * CLEAR_AT)
        large = self.size is not None and size >= self.size
        return large or (self.age is not None and age is not None and age >= self.age)


NO_ALARM = Alarm()


@dataclass(frozen=True, slots=True)
class Backlog:
    """A backlog that became an alarm (`rings`), or is none any more."""

    queue: str
    ready: int
    oldest_ready_age: timedelta | None
    alarm: Alarm
    rings: bool


@dataclass(frozen=True, slots=True)
class QueueState:
    """What is stored of a queue besides its jobs."""

    paused: bool = False
    paused_reason: str | None = None
    #: Nothing is enqueued any more: the queue is being drained, or was.
    closed: bool = False
    alarm: Alarm = NO_ALARM


@dataclass(frozen=True, slots=True)
class Drained:
    """How a drain stands: what is left of the queue, by state.

    >>> Drained("llm", heard=False).empty  # and not done: a process that has not heard of it may still enqueue
    True
    """

    queue: str
    scheduled: int = 0
    ready: int = 0
    running: int = 0
    parked: int = 0
    #: Every process has heard that the queue is closed; until then one may still let jobs in.
    heard: bool = False
    #: Nothing is left, and nothing comes any more: `empty` and `heard`.
    done: bool = False

    @property
    def left(self) -> int:
        """Jobs that are left in all."""
        return self.scheduled + self.ready + self.running + self.parked

    @property
    def empty(self) -> bool:
        """Whether no job was left when it was looked at."""
        return self.left == 0
