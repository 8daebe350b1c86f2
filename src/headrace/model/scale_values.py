"""What the scale signal is made of: the rule of a queue, what was seen of it, and what came of that."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from headrace.model.durations import parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.numbers import check_whole
from headrace.model.sentence import Sentence

MAX_WORKERS = 10_000
#: Stands for the name of a quota that is not known.
ANY_MODEL = "a model"


@dataclass(frozen=True, slots=True)
class ScalingRule:
    """The bounds of a queue's workers, and in which time its backlog should be worked off."""

    min_workers: int = 1
    max_workers: int = 10
    drain_within: timedelta = timedelta(seconds=60)

    @classmethod
    def parse(
        cls, min_workers: object = 1, max_workers: object = 10, drain_within: float | str | timedelta = "60s"
    ) -> ScalingRule:
        """Return the checked rule. Raises InvalidInputError naming the field.

        >>> ScalingRule.parse(0, 20, "2m").drain_within
        datetime.timedelta(seconds=120)
        """
        most = check_whole("max_workers", max_workers, most=MAX_WORKERS)
        least = check_whole("min_workers", min_workers, 0, MAX_WORKERS)
        if least > most:
            raise InvalidInputError("min_workers", f"must be at most max_workers, which is {most:,}", min_workers)
        within = parse_duration(drain_within, field="drain_within")
        if within <= timedelta():
            raise InvalidInputError("drain_within", "must be longer than zero", drain_within)
        return cls(least, most, within)


class ScaleReason(StrEnum):
    """Why a queue wants so many workers."""

    #: it is paused: what runs
    PAUSED = "paused"
    #: a circuit breaker holds jobs: as many as there are
    BREAKER = "breaker"
    #: a budget has no room: as many as there are
    BUDGET = "budget"
    #: the quota of a model holds jobs: as many as there are
    QUOTA = "quota"
    #: what runs and the backlog need more
    BACKLOG = "backlog"
    #: caps and rate limits leave room for no more
    ROOM = "room"
    #: `max_workers` allows no more
    MAX = "max_workers"
    #: `min_workers` asks for so many
    MIN = "min_workers"
    #: fewer are enough
    IDLE = "idle"
    #: those that there are do
    ENOUGH = "enough"


#: What no worker more helps against.
HOLDS = frozenset({ScaleReason.BREAKER, ScaleReason.BUDGET, ScaleReason.QUOTA})


@dataclass(frozen=True, slots=True)
class Binding:
    """A quota, a budget or a breaker that holds jobs: which of `HOLDS`, and its name, or `ANY_MODEL`."""

    kind: ScaleReason
    name: str


@dataclass(frozen=True, slots=True)
class Load:
    """What is seen of a queue at one look."""

    #: ready jobs that nothing but the number of slots keeps from starting
    eligible: int = 0
    running: int = 0
    #: jobs that are ready, scheduled or parked, eligible ones included
    waiting: int = 0
    live_workers: int = 0
    #: of one worker
    slots: float = 10.0
    #: of the jobs that were made last of those that ended, on average; None: none did
    seconds_per_job: float | None = None
    #: how many more jobs caps and rate limits let start; None: as many as like
    room: int | None = None
    #: what caps, rates and breakers hold others by, as `Eligible.held_by` tells
    held_by: str | None = None
    binding: Binding | None = None
    paused: bool = False


@dataclass(frozen=True, slots=True)
class ScaleSignal:
    """How many workers a queue wants, why, and what that was made of."""

    queue: str
    wanted_workers: int
    reason: ScaleReason
    #: why, for people
    said: Sentence
    #: slots for what runs and the backlog, before workers were counted
    needed_slots: float
    load: Load
    rule: ScalingRule

    @property
    def sentence(self) -> str:
        """The one sentence that says why, in English."""
        return str(self.said)
