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

from headrace.model.scale_values import Load, ScaleReason, ScaleSignal, ScalingRule
from headrace.model.scale_words import NEAR, sentence

#: Workers are let go where fewer than this share of them is wanted.
SHRINK_BELOW = 0.7


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
    return ScaleSignal(queue, wanted, reason, sentence(reason, rule, load, needed), round(needed, 3), load, rule)


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
    workers = math.ceil(needed / load.slots - NEAR)
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
