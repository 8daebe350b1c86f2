"""The scale signal: how many workers a queue wants, for whoever starts and stops them. A pure rule of one look.

Little's law says how many slots a load keeps busy: jobs per second × seconds per job (J. D. C. Little, "A Proof for the
Queuing Formula: L = λW", Operations Research 9, 1961). What runs now is the load that the queue has; to work off the
eligible backlog within `drain_within` as well, backlog ÷ drain_within more jobs have to start per second. Hence

    needed slots = running + eligible × seconds per job ÷ drain_within

and as many workers as have these slots. Beyond that:

- where a quota, a budget or a breaker holds jobs, no worker more than there are: they could not start anything. None
  less either, for what was held comes back at once;
- caps and rate limits leave room for some jobs; more slots than these are not asked for;
- a queue that is paused wants what runs, and no more;
- it shrinks only where fewer than `SHRINK_BELOW` of the workers are enough. This needs no memory of the looks before:
  any number of services give the same answer, and one that restarts does not forget;
- to no worker at all only where nothing runs or waits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from headrace.model.durations import format_duration, parse_duration
from headrace.model.errors import InvalidInputError
from headrace.model.numbers import check_whole

#: Workers are let go where fewer than this share of them is wanted.
SHRINK_BELOW = 0.7
MAX_WORKERS = 10_000
#: Rounding of floats is no reason for another worker.
_NEAR = 1e-9


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
    """A quota, a budget or a breaker that holds jobs: which of `HOLDS`, and its name."""

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
    #: of jobs that ended lately, on average; None: none did
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
    sentence: str
    #: slots for what runs and the backlog, before workers were counted
    needed_slots: float
    load: Load
    rule: ScalingRule


def scale(queue: str, rule: ScalingRule, load: Load) -> ScaleSignal:
    """Return how many workers a queue wants.

    >>> burst = Load(eligible=600, running=10, live_workers=1, seconds_per_job=2.0)
    >>> signal = scale("mail", ScalingRule(), burst)
    >>> signal.wanted_workers, signal.sentence
    (3, '600 jobs could start, of 2 s each: with the 10 that run they need 30 slots to be done within 1m')
    """
    needed = load.running + _more(rule, load)
    enough = _enough(needed, load)
    wanted = max(rule.min_workers, min(rule.max_workers, enough))
    reason = _reason(rule, load, wanted, enough)
    return ScaleSignal(queue, wanted, reason, _sentence(reason, rule, load, needed), round(needed, 3), load, rule)


def _more(rule: ScalingRule, load: Load) -> float:
    """Return the slots that the backlog needs beside what runs."""
    if load.paused:
        return 0.0
    within = rule.drain_within.total_seconds()
    # A job takes a slot of its own at most; one of unknown length is taken to fill it.
    share = 1.0 if load.seconds_per_job is None else min(1.0, load.seconds_per_job / within)
    more = load.eligible * share
    return more if load.room is None else min(more, max(0, load.room))


def _enough(needed: float, load: Load) -> int:
    """Return the workers that a load asks for whatever the bounds."""
    live = load.live_workers
    workers = math.ceil(needed / load.slots - _NEAR)
    if load.paused:
        return min(workers, live)
    if load.binding is not None:
        return live
    workers = max(workers, 1 if load.waiting or load.running or load.eligible else 0)
    return live if SHRINK_BELOW * live <= workers < live else workers


def _reason(rule: ScalingRule, load: Load, wanted: int, enough: int) -> ScaleReason:
    if load.paused:
        return ScaleReason.PAUSED
    if wanted != enough:
        return ScaleReason.MAX if wanted < enough else ScaleReason.MIN
    if load.binding is not None:
        return load.binding.kind
    if wanted < load.live_workers:
        return ScaleReason.IDLE
    if _is_capped(rule, load):
        return ScaleReason.ROOM
    return ScaleReason.BACKLOG if wanted > load.live_workers else ScaleReason.ENOUGH


def _is_capped(rule: ScalingRule, load: Load) -> bool:
    """Whether it is for want of room that no more slots are needed."""
    if load.room is not None and _more(rule, load) == load.room:
        return True
    return not load.eligible and load.held_by is not None


def _sentence(reason: ScaleReason, rule: ScalingRule, load: Load, needed: float) -> str:
    live, name = _count(load.live_workers, "worker"), "" if load.binding is None else load.binding.name
    match reason:
        case ScaleReason.PAUSED:
            return f"it is paused: only what runs needs slots ({_count(load.running, 'job')})"
        case ScaleReason.BREAKER:
            return f"breaker {name} holds jobs: neither more nor fewer than the {live} there are"
        case ScaleReason.BUDGET:
            return f"budget {name} has no room for calls: neither more nor fewer than the {live} there are"
        case ScaleReason.QUOTA:
            return f"the quota of {name} holds jobs: neither more nor fewer than the {live} there are"
        case ScaleReason.MAX:
            return f"{_work(rule, load, needed)}, and max_workers is {rule.max_workers:,}"
        case ScaleReason.MIN:
            return f"min_workers is {rule.min_workers:,}; {_work(rule, load, needed)}"
        case ScaleReason.ROOM:
            what = "caps and rate limits" if load.held_by is None else load.held_by
            return f"{what} let {_count(load.room or 0, 'more job')} start; {_work(rule, load, needed)}"
        case _:
            return _work(rule, load, needed)


def _work(rule: ScalingRule, load: Load, needed: float) -> str:
    if not load.eligible:
        rest = f", {load.waiting:,} wait for something else than slots" if load.waiting else ""
        runs = f"{load.running or 'none'} run{'' if load.running > 1 else 's'}"
        return f"no job could start, {runs}{rest}"
    each = "of unknown length" if load.seconds_per_job is None else f"of {load.seconds_per_job:.3g} s each"
    with_those = f"with the {load.running:,} that run they" if load.running else "they"
    slots = _count(math.ceil(needed - _NEAR), "slot")
    within = format_duration(rule.drain_within)
    return f"{_count(load.eligible, 'job')} could start, {each}: {with_those} need {slots} to be done within {within}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
