"""Books of names: each is given once in its scope, and none like another."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from itertools import combinations
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import App
from headrace.clock import SystemClock
from headrace.llm.dedupe import Claimed, Meaning, NameBook, Reason, Rejected, Rule, Similarity, normalise
from headrace.model.errors import ConfigError, InvalidInputError, StoreUnavailableError
from headrace.model.known_names import ClaimedNames, KnownName, NewName
from headrace.ports.name_store import NameStore
from headrace.stores.memory import open_memory_stores

ME, YOU, THEY = UUID(int=1), UUID(int=2), UUID(int=3)


class Unhurried:
    """A name store whose callers are overtaken between their verbs, and may lose answers."""

    def __init__(self, store: NameStore, seed: int = 0) -> None:
        self._store, self._chance = store, random.Random(seed)
        self.claims = 0
        #: The claims, counted from 1, whose answers are lost after they were carried out.
        self.lost: set[int] = set()

    async def claim_names(self, scope: str, names: Sequence[NewName], *, seen: int) -> ClaimedNames:
        await self._wait()
        self.claims += 1
        number = self.claims
        claimed = await self._store.claim_names(scope, names, seen=seen)
        await self._wait()
        if number in self.lost:
            raise StoreUnavailableError("the answer was lost")
        return claimed

    async def list_names(self, scope: str, *, after: int = 0) -> list[KnownName]:
        await self._wait()
        return await self._store.list_names(scope, after=after)

    async def release_names(self, scope: str, owner: UUID) -> int:
        return await self._store.release_names(scope, owner)

    async def _wait(self) -> None:
        for _ in range(self._chance.randrange(4)):
            await asyncio.sleep(0)


def open_store() -> NameStore:
    """Open an empty name store."""
    store = open_memory_stores(SystemClock()).names
    assert store is not None
    return store


@pytest.fixture
async def store() -> AsyncIterator[NameStore]:
    """Return an empty name store."""
    yield open_store()


def verdicts(claimed: Claimed) -> list[tuple[str, str, Reason]]:
    """Return the rejected names with why."""
    return [(each.name, each.because, each.reason) for each in claimed.rejected]


async def test_a_claim_says_what_is_given_and_what_stands_in_the_way_of_the_rest(store: NameStore) -> None:
    """Each rejected name comes with the name it clashes with, and how."""
    book = NameBook(store, "s")
    await book.claim(["Frostkeep", "Icehold", "Sector 7"], owner=YOU)
    claimed = await book.claim(
        ["THE FROSTKEEP", "Icehald", "Sector 8", "Emberfall", "Emberfal", "emberfall!", "  ", "x" * 201], owner=ME
    )
    assert claimed.accepted == ("Sector 8", "Emberfall")
    assert claimed.indices == (2, 3)
    assert verdicts(claimed) == [
        ("THE FROSTKEEP", "Frostkeep", Reason.EXACT),
        ("Icehald", "Icehold", Reason.SIMILAR),
        ("Emberfal", "Emberfall", Reason.WITHIN_BATCH),
        ("emberfall!", "Emberfall", Reason.WITHIN_BATCH),
        ("  ", "", Reason.NOT_A_NAME),
        ("x" * 201, "", Reason.NOT_A_NAME),
    ]
    assert [each.index for each in claimed.rejected] == [0, 1, 4, 5, 6, 7]
    assert await book.known_names() == ["Frostkeep", "Icehold", "Sector 7", "Sector 8", "Emberfall"]


async def test_books_of_a_scope_see_each_other_and_scopes_do_not_mix(store: NameStore) -> None:
    """A book learns what another one took after it last looked; another scope has names of its own."""
    one, other = NameBook(store, "s"), NameBook(store, "s")
    await one.claim(["Icehold"], owner=ME)
    await other.claim(["Frostkeep"], owner=YOU)
    assert verdicts(await one.claim(["Frostkeap"], owner=ME)) == [("Frostkeap", "Frostkeep", Reason.SIMILAR)]
    assert (await NameBook(store, "t").claim(["Frostkeap"], owner=ME)).accepted == ("Frostkeap",)


async def test_what_came_meanwhile_is_compared_too(store: NameStore) -> None:
    """A name taken by another between looking and claiming stands in the way like any other."""
    slow = Unhurried(store)
    mine, yours = NameBook(slow, "s"), NameBook(slow, "s")
    await mine.claim(["Icehold"], owner=ME)
    await yours.claim(["Frostkeep", "Emberfall"], owner=YOU)
    before = slow.claims
    claimed = await mine.claim(["Frostkeap", "Emberfal Harbor", "Stonewatch"], owner=ME)
    assert slow.claims == before + 2, "the book was told of names it had not seen, compared, and claimed again"
    assert claimed.accepted == ("Emberfal Harbor", "Stonewatch")
    assert verdicts(claimed) == [("Frostkeap", "Frostkeep", Reason.SIMILAR)]


async def test_a_limit_leaves_the_rest_untouched(store: NameStore) -> None:
    """Names beyond the limit are neither given nor refused, and stay free."""
    book = NameBook(store, "s")
    claimed = await book.claim(["Icehold", "Icehald", "Frostkeep", "Emberfall"], owner=ME, limit=2)
    assert (claimed.accepted, claimed.spare) == (("Icehold", "Frostkeep"), ("Emberfall",))
    assert (await book.claim(["Emberfall"], owner=YOU)).accepted == ("Emberfall",)
    assert (await book.claim(["Stonewatch"], owner=ME, limit=0)).spare == ("Stonewatch",)


async def test_a_repeated_claim_gives_the_same_answer(store: NameStore) -> None:
    """After a crash the owner gets its names and reasons again, though others have taken names since."""
    await NameBook(store, "s").claim(["Icehold"], owner=YOU)
    asked = ["Icehald", "Frostkeep", "Frostkeap", "Emberfall", "Emberfall Harbour", "Stonewatch"]
    first = await NameBook(store, "s").claim(asked, owner=ME, limit=3)
    assert (first.accepted, first.spare) == (("Frostkeep", "Emberfall", "Emberfall Harbour"), ("Stonewatch",))
    later = await NameBook(store, "s").claim(["Stonewatch", "Icehald", "Moonhaven"], owner=THEY)
    assert later.accepted == ("Stonewatch", "Moonhaven")
    assert await NameBook(store, "s").claim(asked, owner=ME, limit=3) == first
    assert len(await store.list_names("s")) == 6


async def test_a_lost_answer_leaves_no_hole_in_what_is_known(store: NameStore) -> None:
    """Names that were taken without our hearing of it are the owner's, and later names are compared with them."""
    losing = Unhurried(store)
    losing.lost = {1}
    book = NameBook(losing, "s")
    with pytest.raises(StoreUnavailableError, match="the answer was lost"):
        await book.claim(["Frostkeep"], owner=ME)
    assert verdicts(await book.claim(["Frostkeap"], owner=ME)) == [("Frostkeap", "Frostkeep", Reason.SIMILAR)]
    assert (await book.claim(["Frostkeep"], owner=ME)).accepted == ("Frostkeep",)


async def test_claims_that_come_together_are_one_of_the_store(store: NameStore) -> None:
    """They are answered in their order, each compared with those before it, by two claims: the first goes at once."""
    slow = Unhurried(store)
    book = NameBook(slow, "s")
    asked = ["Icehold", "Frostkeep", "Frostkeap", "Emberfall", "FROSTKEEP!", "Icehald", "Stonewatch"]
    answers = await asyncio.gather(*(book.claim([name], owner=UUID(int=n)) for n, name in enumerate(asked)))
    assert [answer.accepted for answer in answers] == [
        ("Icehold",), ("Frostkeep",), (), ("Emberfall",), (), (), ("Stonewatch",),
    ]  # fmt: skip
    assert [verdicts(answer)[0][1:] for answer in answers if not answer.accepted] == [
        ("Frostkeep", Reason.SIMILAR), ("Frostkeep", Reason.EXACT), ("Icehold", Reason.SIMILAR),
    ]  # fmt: skip
    assert slow.claims <= 2
    assert (await book.claim(["Moonhaven"], owner=ME)).accepted
    assert slow.claims <= 3, "what the book took itself is no news to it"


async def test_claims_together_that_are_overtaken_are_judged_anew(store: NameStore) -> None:
    """What another book took meanwhile stands in the way, and what was compared before is not taken for known."""
    slow = Unhurried(store)
    mine, yours = NameBook(slow, "s"), NameBook(slow, "s")
    await mine.claim(["Icehold"], owner=ME)
    await yours.claim(["Frostkeep"], owner=YOU)
    together = [mine.claim([name], owner=UUID(int=n)) for n, name in enumerate(["Frostkeap", "Frostkeepe", "Moon"], 5)]
    answers = await asyncio.gather(*together)
    assert [verdicts(answer) for answer in answers[:2]] == [
        [("Frostkeap", "Frostkeep", Reason.SIMILAR)], [("Frostkeepe", "Frostkeep", Reason.SIMILAR)],
    ]  # fmt: skip
    assert answers[2].accepted == ("Moon",)


async def test_names_that_an_owner_took_elsewhere_stand_in_the_way_of_those_it_claims_with(store: NameStore) -> None:
    """An owner goes on in another process after a crash, beside others: what it took before is compared with."""
    here = NameBook(store, "s")
    await here.claim(["Icehold"], owner=ME)
    await NameBook(store, "s").claim(["Frostkeep"], owner=YOU)
    first, again = await asyncio.gather(here.claim(["Frostkeap"], owner=ME), here.claim(["Frostkeep"], owner=YOU))
    assert verdicts(first) == [("Frostkeap", "Frostkeep", Reason.SIMILAR)]
    assert again.accepted == ("Frostkeep",)


async def test_a_claim_that_is_given_up_leaves_the_others(store: NameStore) -> None:
    """Who asked beside it has an answer."""
    book = NameBook(Unhurried(store), "s")
    asks = [asyncio.create_task(book.claim([name], owner=ME)) for name in ("Icehold", "Frostkeep", "Moonhaven")]
    await asyncio.sleep(0)
    asks[1].cancel()
    answers = await asyncio.gather(*asks, return_exceptions=True)
    assert isinstance(answers[1], asyncio.CancelledError)
    assert [answer.accepted for answer in answers if isinstance(answer, Claimed)] == [("Icehold",), ("Moonhaven",)]


async def test_released_names_can_be_taken_again(store: NameStore) -> None:
    """The names of work that is thrown away are free; names of other owners stay taken."""
    book = NameBook(store, "s")
    await book.claim(["Frostkeep", "Icehold"], owner=ME)
    await book.claim(["Emberfall"], owner=YOU)
    assert await book.release(ME) == 2
    claimed = await book.claim(["Frostkeap", "Emberfal"], owner=YOU)
    assert (claimed.accepted, verdicts(claimed)) == (
        ("Frostkeap",),
        [("Emberfal", "Emberfall", Reason.SIMILAR)],
    )


async def test_names_given_away_behind_our_back_are_not_given_twice(store: NameStore) -> None:
    """Another book released an owner's names and somebody took them: the owner is told so, not given them again."""
    book = NameBook(store, "s")
    await book.claim(["Frostkeep"], owner=ME)
    other = NameBook(store, "s")
    await other.release(ME)
    await other.claim(["Frostkeep"], owner=YOU)
    assert verdicts(await book.claim(["Frostkeep"], owner=ME)) == [("Frostkeep", "Frostkeep", Reason.EXACT)]


async def test_a_name_that_the_store_did_not_give_is_not_given(store: NameStore) -> None:
    """A refusal that comes without news makes the book read the scope anew, not hand the name out."""

    class Silent(Unhurried):
        async def claim_names(self, scope: str, names: Sequence[NewName], *, seen: int) -> ClaimedNames:
            if not await store.list_names(scope):
                await store.claim_names(scope, [NewName(new.key, new.name, YOU) for new in names], seen=seen)
                return ClaimedNames()
            return await store.claim_names(scope, names, seen=seen)

    claimed = await NameBook(Silent(store), "s").claim(["Frostkeep"], owner=ME)
    assert verdicts(claimed) == [("Frostkeep", "Frostkeep", Reason.EXACT)]


async def test_a_rule_of_exact_names_lets_similar_ones_pass(store: NameStore) -> None:
    """Without similarity only equal keys clash."""
    book = NameBook(store, "s", Rule(similarity=None))
    claimed = await book.claim(["Frostkeep", "Frostkeap", "the frostkeep"], owner=ME)
    assert claimed.accepted == ("Frostkeep", "Frostkeap")


async def test_meaning_finds_what_letters_do_not(store: NameStore) -> None:
    """Names whose vectors are close are refused; numerals still tell names apart; each name is embedded once."""
    asked: list[str] = []

    async def embed(names: tuple[str, ...]) -> list[list[float]]:
        asked.extend(names)
        return [[1.0, 0.02 * len(name)] if name.startswith(("Frost", "Ice")) else [0.0, 1.0] for name in names]

    await NameBook(store, "s").claim(["Frost Keep"], owner=YOU)
    book = NameBook(store, "s", Rule(meaning=Meaning(embed, threshold=0.9)))
    claimed = await book.claim(["Icehold", "Icehold 2", "Emberfall", "Sunspire"], owner=ME)
    assert claimed.accepted == ("Icehold 2", "Emberfall")
    assert verdicts(claimed) == [
        ("Icehold", "Frost Keep", Reason.SIMILAR),
        ("Sunspire", "Emberfall", Reason.WITHIN_BATCH),
    ]
    await book.claim(["Icehold", "Icehold 3"], owner=ME)
    assert len(asked) == len(set(asked))


async def test_what_is_no_list_of_texts_is_refused(store: NameStore) -> None:
    """A single text, other values, a bad scope and a bad limit are clear errors."""
    book = NameBook(store, "s")
    with pytest.raises(InvalidInputError, match="candidates must be a list of texts, got 'Frostkeep'"):
        await book.claim("Frostkeep", owner=ME)
    with pytest.raises(InvalidInputError, match="candidates must be a list of texts"):
        await book.claim(["Frostkeep", 7], owner=ME)  # type: ignore[list-item]
    with pytest.raises(InvalidInputError, match="limit must be a whole number of at least 0, got -1"):
        await book.claim(["Frostkeep"], owner=ME, limit=-1)
    with pytest.raises(InvalidInputError, match="scope must be 1 to 255 printable characters, got ''"):
        NameBook(store, "")


async def test_an_app_has_books_over_its_store() -> None:
    """`app.names` takes a rule or a scorer's name; books of one scope share the store's names."""
    app = App("memory://")
    with pytest.raises(ConfigError, match="the app is not open"):
        app.names("s")
    async with app:
        await app.names("s").claim(["Frostkeep"], owner=YOU)
        assert verdicts(await app.names("s").claim(["Frostkeap"], owner=ME))
        loose = app.names("s", Rule(similarity=None))
        assert (await loose.claim(["Frostkeap"], owner=ME)).accepted == ("Frostkeap",)
        assert app.names("s", "ratio").rule.similarity == Similarity("ratio", 0.92)
        with pytest.raises(InvalidInputError, match="scorer must be one of"):
            app.names("s", "cosine")  # type: ignore[arg-type]


words = st.sampled_from(
    [
        *("Frostkeep", "frost keep", "Frostkeap", "The Frostkeep", "Frotskeep", "Frostkeepp"),
        *("Icehold", "Icehald", "Icehold II", "Icehold III", "Icehold 2", "", "Lima", "Liam", "Lime", "Limes"),
    ]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.lists(words, max_size=8), min_size=1, max_size=5), st.integers(0, 9), st.sets(st.integers(1, 8)))
def test_no_interleaving_gives_a_name_twice(batches: list[list[str]], seed: int, lost: set[int]) -> None:
    """Whatever overtakes what and whichever answers are lost: names are unique, unlike, and claims repeatable."""
    asyncio.run(_race(batches, seed, lost))


async def _race(batches: Sequence[list[str]], seed: int, lost: set[int]) -> None:
    store = open_store()
    slow = Unhurried(store, seed)
    slow.lost = lost

    async def batch(number: int) -> Claimed:
        while True:  # a claim whose answer was lost is repeated, by a new process
            try:
                return await NameBook(slow, "s").claim(batches[number], owner=UUID(int=number))
            except StoreUnavailableError:
                continue

    answers = await asyncio.gather(*(batch(number) for number in range(len(batches))))
    rows = await store.list_names("s")
    given_names = [(name, UUID(int=number)) for number, answer in enumerate(answers) for name in answer.accepted]
    assert sorted(given_names) == sorted((row.name, row.owner) for row in rows)
    assert len({row.key for row in rows}) == len(rows)
    assert not [pair for pair in combinations([row.name for row in rows], 2) if Similarity().are_similar(*pair)]
    for number, answer in enumerate(answers):
        assert len(answer.accepted) + len(answer.rejected) == len(batches[number])
        assert all(_is_right(each) for each in answer.rejected)
        assert await NameBook(store, "s").claim(batches[number], owner=UUID(int=number)) == answer


def _is_right(rejected: Rejected) -> bool:
    """Whether a name really clashes with what it was rejected for."""
    if rejected.reason is Reason.NOT_A_NAME:
        return not normalise(rejected.name)
    if rejected.reason is Reason.EXACT:
        return normalise(rejected.name) == normalise(rejected.because)
    return Similarity().are_similar(rejected.name, rejected.because)
