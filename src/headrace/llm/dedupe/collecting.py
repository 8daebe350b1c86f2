"""Ask for named items until there are enough with names of their own, or say how many are missing."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar
from uuid import UUID

from headrace.llm.dedupe.book import NameBook
from headrace.llm.dedupe.claims import Claimed, Reason, Rejected
from headrace.model.errors import InvalidInputError
from headrace.model.numbers import check_whole

T = TypeVar("T")

#: Asked with a number of items and the names to avoid; returns items, fewer or more as they come.
Ask = Callable[[int, list[str]], Awaitable[Sequence[T]]]

#: How many neighbours of each rejected name the model is told.
_NEIGHBOURS = 2


@dataclass(frozen=True, slots=True)
class Unique(Generic[T]):
    """Items whose names nobody else has."""

    items: tuple[T, ...]
    #: what was not given, over all rounds, in order
    rejected: tuple[Rejected, ...] = ()
    #: how many of the wanted items there are not: 0 when all went well
    shortfall: int = 0
    #: how often was asked again: 0 when the first answer was enough
    rounds: int = 0


async def collect_unique(  # noqa: PLR0913 # the public call: each parameter is one thing users set
    wanted: int,
    ask: Ask[T],
    book: NameBook,
    *,
    owner: UUID,
    rounds: int = 2,
    over_ask: float = 0.15,
    name_of: Callable[[T], str] = str,
    avoid_limit: int = 100,
) -> Unique[T]:
    """Return `wanted` items whose names are given to `owner` in the book, asking again for those that were rejected.

    `ask(number, avoid)` is awaited first with no names to avoid and then, at most `rounds` times (default 2, 0 for
    never), for what is missing, with at most `avoid_limit` names (default 100): the rejected ones, what they clashed
    with and its nearest neighbours first, then those that were accepted. Each time `over_ask` (default 0.15, 0 to 1)
    more than needed is asked for; names beyond `wanted` are not taken. `name_of` returns an item's name.

    Repeated after a crash with the same owner it asks the same, so that answers that are kept (`app.llm`, `ctx.step`)
    give the same items at no cost. What is missing in the end stands in `shortfall`. Raises what `ask` and the store
    raise; InvalidInputError for wrong numbers.

    >>> import asyncio
    >>> from uuid import UUID
    >>> from headrace import App
    >>> async def ask(number: int, avoid: list[str]) -> list[str]:
    ...     return ["Icehold", "Emberfall"] if avoid else ["Frostkeep", "Frostkeap", "Frost-keep"]
    >>> async def main() -> None:
    ...     async with App("memory://") as app:
    ...         found = await collect_unique(2, ask, app.names("project 7"), owner=UUID(int=1))
    ...         print(found.items, found.rounds, found.shortfall, len(found.rejected))
    >>> asyncio.run(main())
    ('Frostkeep', 'Icehold') 1 0 2
    """
    check_whole("wanted", wanted, least=0)
    check_whole("rounds", rounds, least=0)
    check_whole("avoid_limit", avoid_limit, least=0)
    if isinstance(over_ask, bool) or not isinstance(over_ask, int | float) or not 0 <= over_ask <= 1:
        raise InvalidInputError("over_ask", "must be a number from 0 to 1", over_ask)
    search = _Search(book, owner, name_of, wanted)
    turn = 0
    while search.missing and turn <= rounds:
        number = math.ceil(search.missing * (1 + over_ask))
        await search.add(await ask(number, search.avoid(avoid_limit)))
        turn += 1
    return Unique(tuple(search.items), tuple(search.rejected), search.missing, max(turn - 1, 0))


@dataclass(slots=True)
class _Search(Generic[T]):
    """What was found so far."""

    book: NameBook
    owner: UUID
    name_of: Callable[[T], str]
    wanted: int
    items: list[T] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    #: name of each key that was accepted
    names: dict[str, str] = field(default_factory=dict)
    #: names to avoid, the most useful first
    warned: dict[str, None] = field(default_factory=dict)

    @property
    def missing(self) -> int:
        """How many items there are to find."""
        return self.wanted - len(self.items)

    async def add(self, items: Sequence[T]) -> None:
        """Claim the names of an answer, and keep the items that got theirs."""
        fresh: list[T] = []
        again: list[Rejected] = []
        for item in items:
            # To its owner a name is given as often as it is asked for: whether we had it is for us to know.
            if mine := self.names.get(self.book.key(self.name_of(item))):
                again.append(Rejected(self.name_of(item), mine, Reason.EXACT))
            else:
                fresh.append(item)
        claimed = await self.book.claim([self.name_of(item) for item in fresh], owner=self.owner, limit=self.missing)
        self.items += [fresh[place] for place in claimed.indices]
        self.names.update((self.book.key(name), name) for name in claimed.accepted)
        self.rejected += [*again, *claimed.rejected]
        self._warn([*again, *claimed.rejected], claimed)

    def avoid(self, limit: int) -> list[str]:
        """Return the names that the next answer should not hold."""
        return list(dict.fromkeys([*self.warned, *self.names.values()]))[:limit]

    def _warn(self, rejected: Sequence[Rejected], claimed: Claimed) -> None:
        """Put the rejected names and what they clash with before those of earlier rounds, then their neighbours."""
        clashes = [name for each in rejected for name in (each.name, each.because) if each.reason != Reason.NOT_A_NAME]
        near: list[str] = []
        for each in rejected:
            if claimed.accepted and each.reason != Reason.NOT_A_NAME:
                near += self.book.neighbours(each.name, before=claimed.accepted[0], count=_NEIGHBOURS)
        self.warned = dict.fromkeys([*clashes, *near, *self.warned])
