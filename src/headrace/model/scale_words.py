"""Why a queue wants so many workers, in one sentence for people."""

from __future__ import annotations

import math

from headrace.model.durations import format_duration
from headrace.model.scale_values import Load, ScaleReason, ScalingRule

#: Rounding of floats is no reason for another slot or worker.
NEAR = 1e-9


def sentence(reason: ScaleReason, rule: ScalingRule, load: Load, needed: float) -> str:
    """Return the one sentence that says why a queue wants so many workers."""
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
    slots = _count(math.ceil(needed - NEAR), "slot")
    within = format_duration(rule.drain_within)
    return f"{_count(load.eligible, 'job')} could start, {each}: {with_those} need {slots} to be done within {within}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
