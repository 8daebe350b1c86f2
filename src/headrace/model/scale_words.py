"""Why a queue wants so many workers, in one sentence for people."""

from __future__ import annotations

import math

from headrace.model.durations import format_duration
from headrace.model.scale_values import ANY_MODEL, Load, ScaleReason, ScalingRule
from headrace.model.sentence import Sentence, counted, say

#: Rounding of floats is no reason for another slot or worker.
NEAR = 1e-9


def sentence(reason: ScaleReason, rule: ScalingRule, load: Load, needed: float) -> Sentence:
    """Return the one sentence that says why a queue wants so many workers."""
    live, name, work = _workers(load.live_workers), _bound(load), _work(rule, load, needed)
    match reason:
        case ScaleReason.PAUSED:
            return say("it is paused: only what runs needs slots ({jobs})", jobs=_jobs(load.running))
        case ScaleReason.BREAKER:
            return say(
                "breaker {name} holds jobs: neither more nor fewer than the {live} there are", name=name, live=live
            )
        case ScaleReason.BUDGET:
            return say(
                "budget {name} has no room for calls: neither more nor fewer than the {live} there are",
                name=name,
                live=live,
            )
        case ScaleReason.QUOTA:
            return say(
                "the quota of {name} holds jobs: neither more nor fewer than the {live} there are", name=name, live=live
            )
        case ScaleReason.MAX:
            return say("{work}, and max_workers is {most}", work=work, most=f"{rule.max_workers:,}")
        case ScaleReason.MIN:
            return say("min_workers is {least}; {work}", least=f"{rule.min_workers:,}", work=work)
        case ScaleReason.ROOM:
            more = counted(load.room or 0, "{count} more job", "{count} more jobs")
            return say("{what} let {more} start; {work}", what=_holders(load), more=more, work=work)
        case _:
            return work


def _bound(load: Load) -> Sentence | str:
    name = "" if load.binding is None else load.binding.name
    return say("a model") if name == ANY_MODEL else name


def _holders(load: Load) -> Sentence | str:
    if load.held_by is None:
        return say("caps and rate limits")
    match load.held_by.split(" ", 1):
        case ["cap", name]:
            return say("cap {name}", name=name)
        case ["rate", name]:
            return say("rate {name}", name=name)
        case ["breaker", name]:
            return say("breaker {name}", name=name)
        case _:
            return load.held_by


def _work(rule: ScalingRule, load: Load, needed: float) -> Sentence:
    if not load.eligible:
        return _no_work(load)
    seconds = load.seconds_per_job
    each = say("of unknown length") if seconds is None else say("of {seconds} s each", seconds=f"{seconds:.3g}")
    those = say("with the {running} that run they", running=f"{load.running:,}") if load.running else say("they")
    return say(
        "{jobs} could start, {each}: {those} need {slots} to be done within {within}",
        jobs=_jobs(load.eligible), each=each, those=those,
        slots=counted(math.ceil(needed - NEAR), "{count} slot", "{count} slots"),
        within=format_duration(rule.drain_within),
    )  # fmt: skip


def _no_work(load: Load) -> Sentence:
    count = load.running
    runs = say("{count} runs" if count == 1 else "{count} run", count=count) if count else say("none runs")
    if not load.waiting:
        return say("no job could start, {runs}", runs=runs)
    return say(
        "no job could start, {runs}, {waiting} wait for something else than slots",
        runs=runs, waiting=f"{load.waiting:,}",
    )  # fmt: skip


def _jobs(number: int) -> Sentence:
    return counted(number, "{count} job", "{count} jobs")


def _workers(number: int) -> Sentence:
    return counted(number, "{count} worker", "{count} workers")
