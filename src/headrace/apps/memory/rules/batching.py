"""Which small flushes of several users are asked of the model in one call.

The flush that goes first opens the first group; each further one joins the first group that takes it, or opens one
behind them. So groups are in the order of their first flushes, and each is in order within itself. A group has one
language and one complexity, one flush of a user at most, and bounds of flushes and of tokens. A user's flushes keep
their order: a later one goes into a later group, and an earlier one is as urgent as what waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from uuid import UUID

from headrace import InvalidInputError
from headrace.apps.memory.rules.complexity import Complexity, complexity_of
from headrace.apps.memory.rules.mode import SIZES, mode_of
from headrace.apps.memory.rules.pace import Pace

#: Tokens that one call is asked about at most; a flush that has more is asked about alone.
CALL_TOKENS = 8_192
#: Flushes of one call at most, whatever the mode: `[memory] max_batch_size`.
MOST_FLUSHES = 20

_EARLIEST = datetime.min.replace(tzinfo=UTC)
Sort = tuple[str, Complexity]
#: The best goes first.
Rank = tuple[float, datetime]


@dataclass(frozen=True, slots=True)
class Candidate:
    """A flush that may be asked about together with others."""

    flush_id: UUID
    user_id: str
    tokens: int
    #: "en" or "zh"; None: not known, so that it is asked about alone
    language: str | None
    #: of `rules.priority.score`; the highest goes first
    score: float
    messages: int = 1
    #: of the user's flushes, 1, 2, …: their order
    number: int = 0
    #: of equal scores the oldest goes first
    created_at: datetime = _EARLIEST

    @property
    def sort(self) -> Sort | None:
        """What flushes of one call have in common; None: it has nothing in common with any."""
        if self.language is None:
            return None
        return self.language, complexity_of(self.tokens, self.messages, self.language)


@dataclass(slots=True)
class _Groups:
    """Groups as they grow."""

    size: int
    most_tokens: int
    #: what the smallest flush has: a group that has no room for it is closed
    least_tokens: int
    ids: list[list[UUID]] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    #: places of groups with room, by what their flushes have in common
    open_ones: dict[Sort, list[int]] = field(default_factory=dict)
    #: the first place that the next flush of a user may have
    start: dict[str, int] = field(default_factory=dict)

    def add(self, one: Candidate) -> None:
        sort = one.sort
        opened = [] if sort is None else self.open_ones.setdefault(sort, [])
        place = self._find(opened, one)
        if place is None:
            place = len(self.ids)
            self.ids.append([])
            self.tokens.append(0)
            opened.append(place)
        self.ids[place].append(one.flush_id)
        self.tokens[place] += one.tokens
        self.start[one.user_id] = place + 1
        if len(self.ids[place]) >= self.size or self.tokens[place] + self.least_tokens > self.most_tokens:
            opened.remove(place)

    def _find(self, opened: list[int], one: Candidate) -> int | None:
        start, room = self.start.get(one.user_id, 0), self.most_tokens - one.tokens
        return next((place for place in opened if place >= start and self.tokens[place] <= room), None)


def group_flushes(
    candidates: Iterable[Candidate], size: int, *, most_tokens: int = CALL_TOKENS, most: int = MOST_FLUSHES
) -> list[list[UUID]]:
    """Return the ids of the candidates in groups: each in exactly one, the first group first.

    `size`: flushes of a group, of the mode (`SIZES`), and never more than `most`; `most_tokens`: tokens of a group of
    two or more. The same candidates give the same groups, in whatever order they come. Raises InvalidInputError for
    bounds below 1, and for a flush that is there twice.

    >>> def flush(n, user, score=1.0, language="en"):
    ...     return Candidate(UUID(int=n), user, 100, language, score, number=n)
    >>> groups = group_flushes([flush(1, "a"), flush(2, "a"), flush(3, "b", 2.5), flush(4, "c", language="zh")], 10)
    >>> [[each.int for each in group] for group in groups]
    [[3, 1], [2], [4]]
    """
    for name, bound in (("size", size), ("most_tokens", most_tokens), ("most", most)):
        if bound < 1:
            raise InvalidInputError(name, "must be at least 1", bound)
    ordered = in_order(candidates)
    least = min((one.tokens for one in ordered), default=0)
    groups = _Groups(min(size, most), most_tokens, least)
    for one in ordered:
        groups.add(one)
    return groups.ids


def batch_size(setting: str, pace: Pace, *, most: int = MOST_FLUSHES) -> int:
    """Return how many flushes one call takes: what the mode says for how calls went lately, and at most `most`.

    `setting`: `[memory] batch_mode`. Raises InvalidInputError for another word.

    >>> batch_size("smart", Pace()), batch_size("smart", Pace(latency_ms=9_000.0)), batch_size("large", Pace(), most=7)
    (10, 5, 7)
    """
    return min(SIZES[mode_of(setting, pace.latency_ms, pace.throughput)], most)


def in_order(candidates: Iterable[Candidate]) -> list[Candidate]:
    """Return candidates as they go: by score, then by age; a user's by number. Raises InvalidInputError."""
    by_user: dict[str, list[Candidate]] = {}
    for one in candidates:
        by_user.setdefault(one.user_id, []).append(one)
    ranked = [pair for flushes in by_user.values() for pair in _ranked(flushes)]
    ids = [one.flush_id for _, one in ranked]
    if len(set(ids)) < len(ids):
        twice = next(each for each in ids if ids.count(each) > 1)
        raise InvalidInputError("candidates", "must have each flush once", str(twice))
    ranked.sort(key=lambda pair: (pair[0], pair[1].user_id, pair[1].number, pair[1].flush_id))
    return [one for _, one in ranked]


def _ranked(flushes: Sequence[Candidate]) -> list[tuple[Rank, Candidate]]:
    """Return a user's flushes with their ranks: each holds up the later ones, and so has the best rank of them."""
    ranked: list[tuple[Rank, Candidate]] = []
    for one in sorted(flushes, key=lambda flush: (flush.number, flush.flush_id), reverse=True):
        own = -one.score, one.created_at
        ranked.append((min(own, ranked[-1][0]) if ranked else own, one))
    return ranked
