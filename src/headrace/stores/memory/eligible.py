"""How many jobs of a queue could start now if there were slots, by the predicate that admits jobs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from itertools import islice

from headrace.model.admission import WaitReason
from headrace.model.elastic import Eligible, eligible_of
from headrace.model.limits import Level
from headrace.stores.memory import claims
from headrace.stores.memory.caps import count_usage
from headrace.stores.memory.gate import Keeper
from headrace.stores.memory.lanes import Lane
from headrace.stores.memory.state import State

_RANKS = {reason: rank for rank, reason in enumerate(WaitReason)}


def eligible_jobs(state: State, queue: str, at_most: int, levels: Mapping[str, Level] | None) -> Eligible:
    """Count what could start, and say what holds the rest."""
    workers = sum(state.alive(session) and queue in row.new.queues for session, row in state.sessions.items())
    if claims.paused(state, queue):
        return Eligible(held_by=WaitReason.PAUSED.value, workers=workers)
    buckets = None if levels is None else state.limits.buckets.standing(levels, state.now())
    keeper = Keeper(state, count_usage(state), buckets=buckets)
    bound, find = at_most * max(1, workers), partial(claims.claimable, state)
    jobs, rooms, units, held = 0, [], [], []
    for lane in state.ready.of(queue).values():
        first = lane.first(find)
        if first is None:
            continue
        if queue in state.limits.gated and (obstacles := list(keeper.obstacles(first))):
            held += [(_RANKS[one.reason], one.subject, f"{one.reason.value} {one.subject}") for one in obstacles]
            continue
        most = keeper.most_of_lane(first)
        jobs += _count(state, lane, bound if most is None else min(bound, most))
        rooms.append(keeper.room(first))
        units.append(keeper.units_room(first))
    held_by = min(held)[2] if held else None
    return eligible_of(min(jobs, bound), rooms, units, held_by=held_by, workers=workers)


def _count(state: State, lane: Lane, most: int) -> int:
    waiting = (place for place in lane.heap if claims.claimable(state, place[1]) is not None)
    return sum(1 for _ in islice(waiting, most))
