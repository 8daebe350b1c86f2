"""Rejected items are asked for again, a bounded number of times, and what is missing is said."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.clock import SystemClock
from headrace.llm.dedupe import NameBook, Reason, Unique, collect_unique, normalise
from headrace.model.errors import InvalidInputError
from headrace.ports.name_store import NameStore
from headrace.stores.memory import open_memory_stores

ME, YOU = UUID(int=1), UUID(int=2)


@dataclass
class Model:
    """Answers in turn; keeps what it was asked."""

    answers: Sequence[list[Any]]
    asked: list[tuple[int, list[str]]] = field(default_factory=list)

    async def __call__(self, number: int, avoid: list[str]) -> list[Any]:
        self.asked.append((number, avoid))
        return self.answers[len(self.asked) - 1] if len(self.asked) <= len(self.answers) else []


def open_names() -> NameStore:
    """Open an empty name store."""
    store = open_memory_stores(SystemClock()).names
    assert store is not None
    return store


@pytest.fixture
async def book() -> AsyncIterator[NameBook]:
    """Return the book of an empty scope."""
    yield NameBook(open_names(), "s")


async def test_a_good_first_answer_is_enough(book: NameBook) -> None:
    """A little more is asked for than wanted; what is beyond is not taken."""
    model = Model([["Icehold", "Frostkeep", "Emberfall", "Stonewatch", "Moonhaven"]])
    found = await collect_unique(4, model, book, owner=ME, over_ask=0.2)
    assert found == Unique(("Icehold", "Frostkeep", "Emberfall", "Stonewatch"))
    assert model.asked == [(5, [])]
    assert await book.known_names() == list(found.items)


async def test_rejected_items_are_topped_up_with_names_to_avoid(book: NameBook) -> None:
    """The next ask is for what is missing; it names the rejected, their clashes and neighbours, then the accepted."""
    await book.claim(["Icehold", "Iceholm Bay", "Sunspire"], owner=YOU)
    model = Model([["Emberfall", "Icehald", "Stonewatch"], ["Moonhaven", "Emberfall"]])
    found = await collect_unique(3, model, book, owner=ME, over_ask=0)
    assert (found.items, found.rounds, found.shortfall) == (("Emberfall", "Stonewatch", "Moonhaven"), 1, 0)
    assert model.asked == [(3, []), (1, ["Icehald", "Icehold", "Iceholm Bay", "Emberfall", "Stonewatch"])]
    assert [(each.name, each.reason) for each in found.rejected] == [
        ("Icehald", Reason.SIMILAR),
        ("Emberfall", Reason.EXACT),
    ]


async def test_a_name_is_not_given_twice_to_its_own_owner(book: NameBook) -> None:
    """A model that repeats itself over the rounds gets nothing accepted twice."""
    model = Model([["Icehold"], ["ICEHOLD!", "Icehald"], ["Icehold"]])
    found = await collect_unique(2, model, book, owner=ME)
    assert (found.items, found.shortfall, found.rounds) == (("Icehold",), 1, 2)
    assert [(each.because, each.reason) for each in found.rejected] == [
        ("Icehold", Reason.EXACT),
        ("Icehold", Reason.SIMILAR),
        ("Icehold", Reason.EXACT),
    ]


@pytest.mark.parametrize("rounds", [0, 1, 3])
async def test_after_the_rounds_the_shortfall_is_reported(book: NameBook, rounds: int) -> None:
    """Nothing is asked more than `rounds` times again, and what is missing is not hidden."""
    model = Model([["Icehold"]] * 9)
    found = await collect_unique(10, model, book, owner=ME, rounds=rounds)
    assert (len(model.asked), found.rounds, found.items, found.shortfall) == (rounds + 1, rounds, ("Icehold",), 9)
    assert [number for number, _ in model.asked] == [12, *[11] * rounds]


async def test_the_names_to_avoid_are_bounded(book: NameBook) -> None:
    """A prompt grows with no scope: the last clashes come first, and the rest is cut."""
    model = Model([[f"Isle of {a}{b}ria" for a in "bcdfghjklm" for b in "aeiou"], ["Icehold", "Icehald"]])
    await collect_unique(60, model, book, owner=ME, avoid_limit=7)
    assert [len(avoid) for _, avoid in model.asked] == [0, 7, 7]
    assert model.asked[2][1][:2] == ["Icehald", "Icehold"]


async def test_items_may_be_anything_that_has_a_name(book: NameBook) -> None:
    """`name_of` finds the name in an item, and the items come back whole; also through the book's own method."""
    places = [{"name": "Icehold", "age": 1}, {"name": "Icehald", "age": 2}, {"name": "Sunspire", "age": 3}]
    found = await book.collect_unique(2, Model([places]), owner=ME, name_of=lambda place: place["name"])
    assert found.items == (places[0], places[2])


async def test_nothing_wanted_asks_nothing(book: NameBook) -> None:
    """Zero items are there at once."""
    model = Model([])
    assert await collect_unique(0, model, book, owner=ME) == Unique(())
    assert model.asked == []


async def test_wrong_numbers_are_refused(book: NameBook) -> None:
    """Each error names the parameter and its range, before anything is asked."""
    model = Model([])
    for options in ({"rounds": -1}, {"over_ask": 2}, {"over_ask": True}, {"avoid_limit": -1}):
        (name, value), *_ = options.items()
        with pytest.raises(InvalidInputError, match=f"^{name} must be .*, got {value}"):
            await collect_unique(1, model, book, owner=ME, **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError, match="wanted must be a whole number of at least 0, got -1"):
        await collect_unique(-1, model, book, owner=ME)
    assert model.asked == []


NAMES = st.sampled_from(
    [f"{first}{last}" for first in ("Frost", "Ice", "Ember", "Sun") for last in ("keep", "keap", "hold", "fall")]
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.lists(NAMES, max_size=6), min_size=3, max_size=3),
    st.lists(NAMES, max_size=3),
    st.lists(NAMES, max_size=3),
    st.integers(1, 5),
)
async def test_repeated_after_a_crash_it_asks_and_answers_the_same(
    answers: list[list[str]], before: list[str], after: list[str], wanted: int
) -> None:
    """With answers that are kept a second run asks for nothing new, whatever others have taken since."""
    store = open_names()
    await NameBook(store, "s").claim(before, owner=YOU)
    first, second = Model(answers), Model(answers)
    found = await collect_unique(wanted, first, NameBook(store, "s"), owner=ME)
    await NameBook(store, "s").claim(after, owner=YOU)
    again = await collect_unique(wanted, second, NameBook(store, "s"), owner=ME)
    assert again == found
    assert second.asked == first.asked
    assert len(found.items) + found.shortfall == wanted
    assert len({normalise(item) for item in found.items}) == len(found.items)
