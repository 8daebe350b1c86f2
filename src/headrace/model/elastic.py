"""Elastic slots: how many jobs of a queue one worker runs at once, between two bounds, by the backlog that could start.

Every look counts the *eligible* backlog: ready jobs that nothing but the number of slots keeps from starting. Above one
mark the slots grow by half, below another those that were not used shrink by three tenths. That it does not flap:

- a mark has to be crossed in `LOOKS_IN_A_ROW` looks, one after another, before anything is changed;
- after a change of the size the direction is not turned within `TURN_LOOKS` looks;
- slots that were in use since the last look are not taken away: a worker that is busy and keeps up stays as it is.

Slots do not grow where the jobs that run mostly wait for a limit, nor beyond the room that is left under caps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum

from headrace.model.errors import InvalidInputError
from headrace.model.numbers import check_whole

#: Looks on one side of a mark, one after another, before the size is changed.
LOOKS_IN_A_ROW = 2
#: Looks after a change before the next one may go the other way.
TURN_LOOKS = 4
MAX_SLOTS = 100_000
MAX_MARK = 100_000_000


class Side(IntEnum):
    """Where a backlog lies."""

    BELOW = -1
    BETWEEN = 0
    ABOVE = 1


class Move(StrEnum):
    """What a look led to."""

    GROWN = "grown"
    SHRUNK = "shrunk"
    #: it would have grown, but a limit binds and not the slots
    HELD = "held"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class ElasticSlots:
    """The bounds of a queue's slots in one worker, and the marks of its eligible backlog."""

    least: int
    most: int
    #: None: as many as the worker would have without elastic slots, within the bounds
    start: int | None = None
    grow_above: int = 1_000
    shrink_below: int = 100

    @classmethod
    def parse(
        cls, max_slots: object, *, min_slots: object = 1, start_slots: object = None, grow_above: object = 1_000,
        shrink_below: object = 100,
    ) -> ElasticSlots:  # fmt: skip
        """Return the checked rule. Raises InvalidInputError naming the field.

        >>> ElasticSlots.parse(100, min_slots=10, start_slots=20).start
        20
        """
        most = check_whole("max_slots", max_slots, most=MAX_SLOTS)
        least = check_whole("min_slots", min_slots, most=MAX_SLOTS)
        if least > most:
            raise InvalidInputError("min_slots", f"must be at most max_slots, which is {most:,}", min_slots)
        start = None if start_slots is None else check_whole("start_slots", start_slots, least, most)
        above = check_whole("grow_above", grow_above, most=MAX_MARK)
        below = check_whole("shrink_below", shrink_below, 0, MAX_MARK)
        if below > above:
            raise InvalidInputError("shrink_below", f"must be at most grow_above, which is {above:,}", shrink_below)
        return cls(least, most, start, above, below)

    def begin(self, usual: int) -> Standing:
        """Return how a worker begins that would otherwise have `usual` slots.

        >>> ElasticSlots(5, 20).begin(50).size
        20
        """
        return Standing(min(max(usual, self.least), self.most) if self.start is None else self.start)

    def side(self, eligible: int) -> Side:
        """Return where a backlog lies.

        >>> ElasticSlots(5, 20).side(1_000).name, ElasticSlots(5, 20).side(99).name
        ('BETWEEN', 'BELOW')
        """
        if eligible > self.grow_above:
            return Side.ABOVE
        return Side.BELOW if eligible < self.shrink_below else Side.BETWEEN

    def grown(self, size: int) -> int:
        """Return the next larger size: by half, rounded up.

        >>> [ElasticSlots(1, 20).grown(size) for size in (1, 5, 14)]
        [2, 8, 20]
        """
        return min(self.most, -(-size * 3 // 2))

    def shrunk(self, size: int) -> int:
        """Return the next smaller size: by three tenths, rounded down.

        >>> [ElasticSlots(3, 20).shrunk(size) for size in (20, 5, 4)]
        [14, 3, 3]
        """
        return max(self.least, size * 7 // 10)


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of a queue in one worker, its part of what all of them share."""

    #: jobs that nothing but the number of slots keeps from starting
    eligible: int
    #: the most slots in use at once since the last look
    used: int = 0
    #: how many more the caps let start; None: no cap
    room: int | None = None
    #: the jobs that run mostly wait for a quota or a budget
    limited: bool = False


@dataclass(frozen=True, slots=True)
class Standing:
    """The size, and what is remembered of the looks before."""

    size: int
    side: Side = Side.BETWEEN
    #: looks on this side, one after another
    streak: int = 0
    #: the way of the last change, and the looks since
    turned: Side = Side.BETWEEN
    since: int = 0


def judge(rule: ElasticSlots, standing: Standing, look: Look) -> tuple[Standing, Move]:
    """Return how it stands after a look, and what that led to.

    >>> rule, standing = ElasticSlots(5, 20), Standing(10)
    >>> for _ in range(3):
    ...     standing, move = judge(rule, standing, Look(eligible=2_000, used=10))
    ...     print(standing.size, move.value)
    10 kept
    15 grown
    20 grown
    >>> judge(rule, standing, Look(eligible=2_000, used=20, limited=True))[1].value
    'kept'
    >>> judge(rule, Standing(10), Look(eligible=2_000, used=10, limited=True))[1].value
    'held'
    """
    side = rule.side(look.eligible)
    wanted = _wanted(rule, standing.size, side, look)
    if side is Side.ABOVE and wanted <= standing.size < rule.most:
        # Once the limit does not bind any more, the looks are counted anew.
        return _seen(standing, Side.BETWEEN), Move.HELD
    seen = _seen(standing, side)
    if wanted == standing.size or seen.streak < LOOKS_IN_A_ROW or _turns_too_soon(seen, side):
        return seen, Move.KEPT
    return replace(seen, size=wanted, turned=side, since=0), Move.GROWN if side is Side.ABOVE else Move.SHRUNK


def _seen(standing: Standing, side: Side) -> Standing:
    streak = standing.streak + 1 if side is standing.side else 1
    return replace(standing, side=side, streak=streak, since=standing.since + 1)


def _turns_too_soon(seen: Standing, side: Side) -> bool:
    return seen.turned not in (Side.BETWEEN, side) and seen.since < TURN_LOOKS


def _wanted(rule: ElasticSlots, size: int, side: Side, look: Look) -> int:
    """Return the size that a look alone asks for."""
    if side is Side.BELOW:
        return min(size, max(rule.shrunk(size), look.used))
    if side is Side.BETWEEN or look.limited:
        return size
    return rule.grown(size) if look.room is None else min(rule.grown(size), size + look.room)


@dataclass(frozen=True, slots=True)
class Eligible:
    """The eligible backlog of a queue, as a store counts it."""

    #: ready jobs that could start now if there were slots, counted up to a bound
    jobs: int = 0
    #: how many more the caps let start, of the lane with the most room; None: one has no cap, or nothing is eligible
    room: int | None = None
    #: What holds others: a word of `WaitReason` and its subject, the first by that order and by name; None: nothing.
    held_by: str | None = None
    #: live workers that serve the queue
    workers: int = 0
    #: how many more the units of rate limits let start at once, of the lane with the most; None as for `room`
    units: int | None = None

    @property
    def sharers(self) -> int:
        """Among how many workers the backlog is divided."""
        return max(1, self.workers)

    def seen_by_one(self, *, used: int, limited: bool) -> Look:
        """Return one worker's part, rounded up.

        >>> Eligible(jobs=900, room=5, workers=2).seen_by_one(used=4, limited=False)
        Look(eligible=450, used=4, room=3, limited=False)
        """
        room = None if self.room is None else -(-self.room // self.sharers)
        return Look(-(-self.jobs // self.sharers), used, room, limited)


def eligible_of(
    jobs: int, rooms: Sequence[int | None], units: Sequence[int | None] = (), *, held_by: str | None, workers: int
) -> Eligible:
    """Return the eligible backlog of lanes that let so many jobs start each, by caps and by units (None: has none).

    >>> eligible_of(50, [3, 8], held_by=None, workers=1).room, eligible_of(50, [3, None], held_by=None, workers=1).room
    (8, None)
    """
    return Eligible(jobs, _most(rooms), held_by, workers, _most(units))


def _most(rooms: Sequence[int | None]) -> int | None:
    known = [room for room in rooms if room is not None]
    return max(known) if known and len(known) == len(rooms) else None
