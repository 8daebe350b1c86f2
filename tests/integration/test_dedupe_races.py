"""Twenty batches race for the names of one scope, on every store that keeps names."""

from __future__ import annotations

import asyncio
import importlib
import random
import string
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from itertools import combinations
from uuid import UUID

import pytest
from rapidfuzz.distance import OSA

from headrace.clock import SystemClock
from headrace.llm.dedupe import Claimed, NameBook, Reason, Unique, collect_unique, normalise
from headrace.llm.dedupe.edits import is_typo
from headrace.llm.dedupe.numerals import Form, form_of
from headrace.model.errors import StoreUnavailableError
from headrace.model.known_names import ClaimedNames, KnownName, NewName
from headrace.ports.name_store import NameStore

BATCHES, SIZE = 20, 50
SYLLABLES = (
    "ka",
    "ro",
    "mi",
    "tel",
    "sun",
    "dor",
    "vey",
    "lun",
    "har",
    "bri",
    "oss",
    "quen",
    "zal",
    "pir",
    "egg",
    "wot",
)


@pytest.fixture(params=["memory", "postgres", "redis"])
async def names(request: pytest.FixtureRequest) -> AsyncIterator[NameStore]:
    """Return the empty name store of one backend."""
    backend = importlib.import_module(f"tests.backends.{request.param}")
    async with backend.open_test_stores(SystemClock() if request.param == "memory" else None) as stores:
        yield stores.names


class Losing:
    """A name store that loses the answers to some claims after they were carried out."""

    def __init__(self, store: NameStore, chance: random.Random) -> None:
        self._store, self._chance = store, chance
        self.newer = 0

    async def claim_names(self, scope: str, names: Sequence[NewName], *, seen: int) -> ClaimedNames:
        await asyncio.sleep(0)  # the memory store lets nobody in between by itself
        claimed = await self._store.claim_names(scope, names, seen=seen)
        self.newer += bool(claimed.newer)
        if self._chance.random() < 0.1:
            raise StoreUnavailableError("the answer was lost")
        return claimed

    async def list_names(self, scope: str, *, after: int = 0) -> list[KnownName]:
        return await self._store.list_names(scope, after=after)

    async def release_names(self, scope: str, owner: UUID) -> int:
        return await self._store.release_names(scope, owner)


def made_up(chance: random.Random) -> str:
    """Return a name as twenty models of one prompt would give it: often one that others give too, or nearly."""
    number = min(int(chance.expovariate(1 / 150)), 1_500)
    words = random.Random(number)
    name = "".join(words.choices(SYLLABLES, k=words.randint(2, 4))).title()
    kind = chance.random()
    if kind < 0.15:
        place = chance.randrange(len(name))
        return name[:place] + chance.choice(string.ascii_lowercase) + name[place + 1 :]
    if kind < 0.25:
        return chance.choice([name.upper(), f"The {name}", f"“{name}”", f"{name}!"])
    return f"{name} {chance.choice(['II', 'III', '2', '3'])}" if kind < 0.35 else name


def edits(one: Form, other: Form) -> int:
    """Return how many edits apart two names are, up to 3."""
    return OSA.distance(one.text, other.text, score_cutoff=2)


async def check(names: NameStore, answers: Sequence[Claimed | Unique[str]]) -> list[str]:
    """Check that no name was given twice, nor two that are alike, and return all that were given."""
    rows = await names.list_names("towns")
    listed = [answer.accepted if isinstance(answer, Claimed) else answer.items for answer in answers]
    mine = [(name, UUID(int=number)) for number, each in enumerate(listed) for name in each]
    assert sorted(mine) == sorted((row.name, row.owner) for row in rows)
    given = [name for name, _ in mine]
    assert max(Counter(map(normalise, given)).values()) == 1
    forms = [form_of(normalise(name)) for name in given]
    same = [(one, other) for one, other in combinations(forms, 2) if one.numerals == other.numerals]
    assert [pair for pair in same if is_typo(*(form.text for form in pair), edits(*pair))] == []
    return given


async def test_no_name_is_given_twice_to_racing_batches(names: NameStore) -> None:
    """Twenty owners claim fifty overlapping names each, and lose one answer in ten: none doubled, none alike."""
    chance = random.Random(7)
    wanted = [[made_up(chance) for _ in range(SIZE)] for _ in range(BATCHES)]
    losing = Losing(names, chance)

    async def batch(number: int) -> Claimed:
        while True:
            try:
                return await NameBook(losing, "towns").claim(wanted[number], owner=UUID(int=number))
            except StoreUnavailableError:
                await asyncio.sleep(0)

    answers = await asyncio.gather(*(batch(number) for number in range(BATCHES)))
    given = await check(names, answers)
    reasons = Counter(each.reason for answer in answers for each in answer.rejected)
    print(f"{len(given)} of {BATCHES * SIZE} given, {dict(reasons)}, overtaken {losing.newer} times")

    assert len(given) > 100 and min(reasons[each] for each in (Reason.EXACT, Reason.SIMILAR, Reason.WITHIN_BATCH)) > 5
    assert losing.newer >= BATCHES // 2, "the batches did not race"
    again = [await NameBook(names, "towns").claim(wanted[n], owner=UUID(int=n)) for n in range(BATCHES)]
    assert again == list(answers)


async def test_racing_batches_are_topped_up(names: NameStore) -> None:
    """Twenty batches of 25 names each get all of them within two rounds, or say how many are missing."""

    async def collect(number: int) -> Unique[str]:
        chance = random.Random(100 + number)

        async def ask(count: int, avoid: list[str]) -> list[str]:
            assert len(avoid) <= 100
            await asyncio.sleep(0)
            # As a model does that was told what to avoid: other names, though still some that others have.
            return [made_up(chance) + (f" {chance.choice(SYLLABLES)}" if avoid else "") for _ in range(count)]

        book = NameBook(names, "towns")
        return await collect_unique(25, ask, book, owner=UUID(int=number))

    found = await asyncio.gather(*(collect(number) for number in range(BATCHES)))
    given = await check(names, found)
    assert all(len(each.items) + each.shortfall == 25 and each.rounds <= 2 for each in found)
    assert max(each.rounds for each in found) >= 1
    short = sum(each.shortfall for each in found)
    assert len(given) == 25 * BATCHES - short and short <= 25 * BATCHES // 10
    print(f"{len(given)} items, {sum(len(each.rejected) for each in found)} rejected, {short} missing")
