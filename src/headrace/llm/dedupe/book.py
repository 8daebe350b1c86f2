"""A book of names: each is given once in its scope, and none that is too like another."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar
from uuid import UUID

from headrace.llm.coalescing import Coalescer
from headrace.llm.dedupe.claims import Claimed
from headrace.llm.dedupe.judging import Batch, Rule
from headrace.llm.dedupe.known import KnownNames
from headrace.llm.dedupe.numerals import form_of
from headrace.llm.dedupe.similarity import nearest
from headrace.model.errors import InvalidInputError
from headrace.model.known_names import KnownName, NewName
from headrace.model.names import check_key
from headrace.model.numbers import check_whole
from headrace.ports.name_store import NameStore

if TYPE_CHECKING:
    from headrace.llm.dedupe.collecting import Unique

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Ask:
    """One claim that waits for its answer."""

    batch: Batch
    owner: UUID
    limit: int | None
    only_one: bool


class NameBook:
    """The names of one scope, shared by every process on the store.

    `scope`: 1 to 255 printable characters: a project, a tenant, a kind of thing in them. `rule`: when two names count
    as one (default: `Rule()`); all books of a scope should have the same. Safe for any number of coroutines. A book
    keeps the names it has seen: to it, names that others released meanwhile stay taken.

    >>> import asyncio
    >>> from uuid import UUID
    >>> from headrace import App
    >>> async def main() -> None:
    ...     async with App("memory://") as app:
    ...         book = app.names("project 7")
    ...         claimed = await book.claim(["Frostkeep", "The Frost-Keep!", "Frostkeap", "Icehold"], owner=UUID(int=1))
    ...         print(*claimed.accepted)
    ...         print(*(f"{each.name}: {each.reason} ({each.because})" for each in claimed.rejected), sep="; ")
    >>> asyncio.run(main())
    Frostkeep Icehold
    The Frost-Keep!: within the batch (Frostkeep); Frostkeap: within the batch (Frostkeep)
    """

    def __init__(self, names: NameStore, scope: str, rule: Rule | None = None) -> None:
        self._names, self.scope, self.rule = names, check_key("scope", scope), rule or Rule()
        self._known = KnownNames()
        #: up to which position we know all names
        self._seen = 0
        self._is_current = False
        #: whose names that were taken elsewhere we have learnt
        self._owners: set[UUID] = set()
        self._claiming = asyncio.Lock()
        self._asks: Coalescer[_Ask, Claimed] = Coalescer(self._claim_all)

    async def claim(
        self, candidates: Sequence[str], *, owner: UUID, limit: int | None = None, only_one: bool = False
    ) -> Claimed:
        """Take the candidates that are nobody's and like nobody's, in order, at most `limit` of them (default: all).

        `owner`: whoever repeats a claim with the same owner after a crash gets the same answer: the id of the job or
        item the names are for. One owner's claims must not run side by side in two processes, except with `only_one`:
        one name of the owner at most will ever be used, so that those it took elsewhere need not be known, which saves
        a read for each new owner. Raises StoreUnavailableError; claim again then. Raises InvalidInputError for what is
        no list of texts.
        """
        if isinstance(candidates, str) or not all(isinstance(each, str) for each in candidates):
            raise InvalidInputError("candidates", "must be a list of texts", candidates)
        if limit is not None:
            check_whole("limit", limit, least=0)
        # Claims that come while one is under way go together in the next.
        return await self._asks.put(_Ask(Batch(candidates, self.rule), owner, limit, only_one))

    async def known_names(self) -> list[str]:
        """Return the names of the scope, oldest first, as for a prompt."""
        async with self._claiming:
            self._is_current = False
            await self._catch_up()
            return self._known.names()

    async def release(self, owner: UUID) -> int:
        """Give back all names of an owner whose work is thrown away; return how many."""
        async with self._claiming:
            released = await self._names.release_names(self.scope, owner)
            self._known = self._known.without(owner)
            return released

    async def collect_unique(
        self, wanted: int, ask: Callable[[int, list[str]], Awaitable[Sequence[T]]], *, owner: UUID, **options: Any
    ) -> Unique[T]:
        """Ask until there are `wanted` items with names of their own; see `headrace.llm.dedupe.collect_unique`."""
        from headrace.llm.dedupe.collecting import collect_unique

        return await collect_unique(wanted, ask, self, owner=owner, **options)

    def key(self, name: str) -> str:
        """Return the normalised key of a name."""
        return self.rule.normalisation(name)

    def neighbours(self, name: str, *, before: str, count: int) -> list[str]:
        """Return the names most like `name` of those that were taken before `before`, nearest first.

        They are the same whenever it is asked, also after a crash: names taken later are left out.
        """
        first = self._known.find(self.key(before))
        form = form_of(self.key(name))
        group = self._known.group(form.numerals)
        end = sum(first is not None and entry.order < first.order for entry in group.entries)
        return [group.entries[place].name for place in nearest(form.text, group.texts[:end], count=count)]

    async def _claim_all(self, asks: Sequence[_Ask]) -> list[Claimed]:
        """Answer several claims in their order, by one claim of the store."""
        async with self._claiming:
            await self._know({ask.owner for ask in asks if not ask.only_one})
            # Each further turn follows upon a claim of somebody else that went through.
            while True:
                answers, wanted = await self._judge(asks)
                if await self._take(wanted):
                    return answers

    async def _know(self, owners: Set[UUID]) -> None:
        """Know all names that these owners took before, also in another process: the store counts them as seen."""
        self._is_current = self._is_current and owners <= self._owners
        await self._catch_up()
        self._owners |= owners

    async def _judge(self, asks: Sequence[_Ask]) -> tuple[list[Claimed], list[NewName]]:
        """Return the answers there will be if nobody else takes a name meanwhile, and what they accept."""
        answers: list[Claimed] = []
        wanted: list[NewName] = []
        end = self._known.end
        try:
            for ask in asks:
                await ask.batch.look(self._known)
                answer, accepted = ask.batch.settle(self._known, ask.owner, ask.limit)
                answers.append(answer)
                new = [NewName(each.key, each.name, ask.owner) for each in accepted]
                wanted += new
                # Those that follow are compared with these too.
                self._add(name for name in new if self._known.find(name.key) is None)
        finally:
            self._known.forget_after(end)
            for ask in asks:
                ask.batch.forget_after(self._known, end)
        return answers, wanted

    def _add(self, names: Iterable[NewName]) -> None:
        for new in names:
            self._known.add(new.key, new.name, new.owner)

    async def _catch_up(self) -> None:
        """Learn the names that were taken before, where our knowledge may have a hole."""
        if not self._is_current:
            self._learn(await self._names.list_names(self.scope, after=self._seen))
            self._is_current = True

    def _learn(self, newer: Sequence[KnownName]) -> None:
        for known in newer:
            self._known.add(known.key, known.name, known.owner)
            self._seen = max(self._seen, known.position)

    async def _take(self, wanted: Sequence[NewName]) -> bool:
        """Take names; return False where others came first, whose names are known then."""
        if not wanted:
            return True
        # Should this be cut off, the names may be ours without our knowing: look before the next claim.
        self._is_current = False
        claimed = await self._names.claim_names(self.scope, wanted, seen=self._seen)
        self._learn(claimed.newer)
        is_ours = not claimed.newer and claimed.taken.keys() >= {each.key for each in wanted}
        if is_ours:
            self._add(wanted)
            self._see(claimed.taken.values())
        elif not claimed.newer:  # what we know is not what the store holds
            self._learn(await self._names.list_names(self.scope))
        self._is_current = True
        return is_ours

    def _see(self, positions: Iterable[int]) -> None:
        """Note that we know the names at these positions; behind a gap somebody else's may lie."""
        for position in sorted(positions):
            if position == self._seen + 1:
                self._seen = position
