"""Memory: which flushes are asked of the model together, and how many at once."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from random import Random
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import InvalidInputError
from headrace.apps.memory.rules import (
    Candidate,
    Complexity,
    Mode,
    Pace,
    batch_size,
    choose_mode,
    complexity_of,
    group_flushes,
    mode_of,
)
from headrace.apps.memory.rules.batching import in_order

START = datetime(2026, 5, 1, tzinfo=UTC)


def flush(number: int, user: str = "", *, score: float = 1.0, tokens: int = 100, language: str = "en") -> Candidate:
    """A flush whose id and number are `number`; of a user of its own unless one is given."""
    at = START + timedelta(seconds=number)
    return Candidate(UUID(int=number), user or f"u{number}", tokens, language, score, 2, number, at)


def ids(groups: list[list[UUID]]) -> list[list[int]]:
    """Groups by the numbers of their flushes."""
    return [[each.int for each in group] for group in groups]


@st.composite
def candidates(draw: st.DrawFn) -> list[Candidate]:
    """Flushes of few users in both languages, of all sizes and priorities, in any order."""
    count = draw(st.integers(0, 40))
    return [
        Candidate(
            UUID(int=index + 1),
            draw(st.sampled_from("abcdefgh")),
            draw(st.integers(1, 3_000)),
            draw(st.sampled_from(["en", "zh", None])),
            draw(st.sampled_from([0.2, 0.36, 1.0, 1.5, 2.25, 4.5])),
            draw(st.integers(1, 60)),
            draw(st.integers(1, 10_000)) * 100 + index,
            START + timedelta(seconds=draw(st.integers(0, 50))),
        )
        for index in range(count)
    ]


SIZES, BOUNDS = st.integers(1, 25), st.integers(500, 9_000)


@given(found=candidates(), size=SIZES, most_tokens=BOUNDS)
def test_each_flush_is_in_one_group_and_the_bounds_hold(found: list[Candidate], size: int, most_tokens: int) -> None:
    """All are grouped once; no group mixes languages or complexities, has a user twice or is too big."""
    groups = group_flushes(found, size, most_tokens=most_tokens)
    by_id = {one.flush_id: one for one in found}
    assert sorted(each for group in groups for each in group) == sorted(by_id)
    for group in groups:
        members = [by_id[each] for each in group]
        assert 1 <= len(members) <= min(size, 20)
        assert len({one.sort for one in members}) == 1
        assert len(members) == 1 or members[0].language is not None
        assert len({one.user_id for one in members}) == len(members)
        assert len(members) == 1 or sum(one.tokens for one in members) <= most_tokens


@given(found=candidates(), size=SIZES, seed=st.integers())
def test_order_is_respected_and_does_not_hang_on_how_they_come(found: list[Candidate], size: int, seed: int) -> None:
    """Groups go by their first flushes, those within a group in order, a user's by number; shuffled it is the same."""
    groups = group_flushes(found, size)
    rank = {one.flush_id: place for place, one in enumerate(in_order(found))}
    assert all([rank[each] for each in group] == sorted(rank[each] for each in group) for group in groups)
    assert [rank[group[0]] for group in groups] == sorted(rank[group[0]] for group in groups)
    place = {each: number for number, group in enumerate(groups) for each in group}
    for user in {one.user_id for one in found}:
        own = sorted((one for one in found if one.user_id == user), key=lambda one: one.number)
        assert [place[one.flush_id] for one in own] == sorted({place[one.flush_id] for one in own})
    shuffled = list(found)
    Random(seed).shuffle(shuffled)
    assert group_flushes(shuffled, size) == groups


@given(found=candidates())
def test_the_most_urgent_flush_goes_before_those_of_other_users(found: list[Candidate]) -> None:
    """The first of all is the first flush of a user who has one of the best score."""
    if not found:
        assert in_order(found) == []
        return
    first, best = in_order(found)[0], max(one.score for one in found)
    own = [one for one in found if one.user_id == first.user_id]
    assert first == min(own, key=lambda one: one.number)
    assert max(one.score for one in own) == best


def test_groups_are_filled_by_priority_then_age() -> None:
    """Twelve flushes at a size of five: the urgent one first, the older before the younger, full groups first."""
    flushes = [flush(number) for number in range(1, 12)] + [flush(12, score=4.5)]
    assert ids(group_flushes(flushes, 5)) == [[12, 1, 2, 3, 4], [5, 6, 7, 8, 9], [10, 11]]


def test_an_urgent_flush_takes_its_users_earlier_ones_along() -> None:
    """What holds up an urgent flush is as urgent: its user's flushes are served in order all the same."""
    flushes = [flush(1, "a", score=0.2), flush(2, "b", score=1.0), flush(3, "a", score=4.5)]
    assert ids(group_flushes(flushes, 2)) == [[1, 2], [3]]


def test_one_too_large_for_any_call_is_alone() -> None:
    """The bound of tokens never loses a flush."""
    large = flush(1, tokens=400)
    assert ids(group_flushes([large, flush(2), flush(3)], 10, most_tokens=300)) == [[1], [2, 3]]


def test_the_cap_is_above_the_mode() -> None:
    """`max_batch_size` holds whatever the mode asks for."""
    assert [len(group) for group in group_flushes([flush(n) for n in range(1, 10)], 20, most=4)] == [4, 4, 1]


def test_what_cannot_be_grouped_is_refused() -> None:
    """Bounds below one and a flush that is there twice are named."""
    with pytest.raises(InvalidInputError, match="size"):
        group_flushes([], 0)
    with pytest.raises(InvalidInputError, match="most_tokens"):
        group_flushes([], 5, most_tokens=0)
    with pytest.raises(InvalidInputError, match="each flush once"):
        group_flushes([flush(1), replace(flush(1), user_id="other")], 5)


@pytest.mark.parametrize(
    ("latency", "throughput", "mode"),
    [
        (None, None, Mode.MEDIUM),
        (5_000, 100, Mode.MEDIUM),
        (5_000.1, 1, Mode.SMALL),
        (5_000, 99.9, Mode.LARGE),
        (None, 3, Mode.LARGE),
        (8_000, None, Mode.SMALL),
        (100, 1_000, Mode.MEDIUM),
    ],
)
def test_the_mode_follows_latency_and_throughput(latency: float | None, throughput: float | None, mode: Mode) -> None:
    """Slow calls make batches small; else little throughput makes them large; at the bounds nothing changes."""
    assert choose_mode(latency, throughput) is mode
    assert mode_of("smart", latency, throughput) is mode
    sizes = {Mode.SMALL: 5, Mode.MEDIUM: 10, Mode.LARGE: 20}
    pace = Pace(latency_ms=latency, throughput=throughput)
    assert batch_size("smart", pace) == sizes[mode]
    assert batch_size("smart", pace, most=4) == 4


def test_a_setting_forces_the_mode() -> None:
    """What was measured does not matter then; another word is refused."""
    assert [mode_of(each, 9_000, 1) for each in ("small", "medium", "large")] == [Mode.SMALL, Mode.MEDIUM, Mode.LARGE]
    with pytest.raises(InvalidInputError, match="batch_mode must be one of small, medium, large, smart"):
        mode_of("huge")


@pytest.mark.parametrize(
    ("tokens", "messages", "language", "expected"),
    [
        (512, 0, "en", Complexity.SIMPLE),
        (513, 0, "en", Complexity.MEDIUM),
        (400, 8, "en", Complexity.MEDIUM),
        (400, 0, "zh", Complexity.MEDIUM),
        (2_048, 0, "en", Complexity.MEDIUM),
        (2_049, 0, "en", Complexity.COMPLEX),
        (1_366, 0, "zh", Complexity.COMPLEX),
        (0, 0, "en", Complexity.SIMPLE),
    ],
)
def test_complexity_is_of_tokens_messages_and_language(
    tokens: int, messages: int, language: str, expected: Complexity
) -> None:
    """At each bound, and by each of the three."""
    assert complexity_of(tokens, messages, language) is expected


@pytest.mark.parametrize(("tokens", "messages", "language"), [(-1, 0, "en"), (0, -1, "en"), (1, 1, "auto")])
def test_what_has_no_complexity_is_refused(tokens: int, messages: int, language: str) -> None:
    """Negative numbers, and a language that is not known yet."""
    with pytest.raises(InvalidInputError):
        complexity_of(tokens, messages, language)
