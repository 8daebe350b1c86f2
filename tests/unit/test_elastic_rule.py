"""Elastic slots: the pure rule stays within its bounds, follows the backlog, does not flap, and heeds limits."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.elastic import LOOKS_IN_A_ROW, TURN_LOOKS, ElasticSlots, Look, Move, Side, Standing, judge
from headrace.model.errors import InvalidInputError

BOUNDS = st.tuples(st.integers(1, 200), st.integers(1, 200)).map(sorted)
RULES = st.builds(
    lambda bounds, marks: ElasticSlots(*bounds, grow_above=marks[1], shrink_below=marks[0]),
    BOUNDS, st.tuples(st.integers(0, 2_000), st.integers(0, 2_000)).map(sorted),
)  # fmt: skip
LOOKS = st.builds(
    Look, st.integers(0, 5_000), st.integers(0, 250), st.none() | st.integers(0, 100), limited=st.booleans()
)


@st.composite
def standings(draw: st.DrawFn, rule: ElasticSlots) -> Standing:
    """Draw a standing that looks could have led to."""
    standing = Standing(draw(st.integers(rule.least, rule.most)))
    for look in draw(st.lists(LOOKS, max_size=12)):
        standing, _ = judge(rule, standing, look)
    return standing


def run(rule: ElasticSlots, looks: list[Look], size: int) -> list[int]:
    """Return the sizes after looks."""
    standing, sizes = Standing(size), []
    for look in looks:
        standing, _ = judge(rule, standing, look)
        sizes.append(standing.size)
    return sizes


def turns(sizes: list[int]) -> int:
    """Count how often the direction changed."""
    ways = [after > before for before, after in itertools.pairwise(sizes) if after != before]
    return sum(way != other for way, other in itertools.pairwise(ways))


@given(data=st.data(), rule=RULES)
def test_it_stays_within_its_bounds_and_says_what_it_did(data: st.DataObject, rule: ElasticSlots) -> None:
    """Whatever is seen: the size stays between the bounds, and the move tells the way it went."""
    standing = data.draw(standings(rule))
    for look in data.draw(st.lists(LOOKS, max_size=30)):
        after, move = judge(rule, standing, look)
        assert rule.least <= after.size <= rule.most
        assert (after.size > standing.size) == (move is Move.GROWN)
        assert (after.size < standing.size) == (move is Move.SHRUNK)
        standing = after


@given(data=st.data(), rule=RULES, look=LOOKS, more=st.integers(0, 5_000))
def test_a_larger_backlog_never_gives_fewer_slots(
    data: st.DataObject, rule: ElasticSlots, look: Look, more: int
) -> None:
    """Of two looks that differ in the backlog alone, the one that saw more leaves at least as many slots."""
    standing = data.draw(standings(rule))
    larger = Look(look.eligible + more, look.used, look.room, look.limited)
    assert judge(rule, standing, larger)[0].size >= judge(rule, standing, look)[0].size


@given(data=st.data(), rule=RULES, look=LOOKS)
def test_a_limit_that_binds_never_lets_it_grow(data: st.DataObject, rule: ElasticSlots, look: Look) -> None:
    """Not while what runs waits for a quota, and not beyond the room that caps leave."""
    standing = data.draw(standings(rule))
    limited = Look(look.eligible, look.used, look.room, limited=True)
    assert judge(rule, standing, limited)[0].size <= standing.size
    size = judge(rule, standing, look)[0].size
    assert size <= standing.size or look.room is None or size <= standing.size + look.room


@given(rule=RULES, size=st.integers(1, 200), eligible=st.integers(0, 5_000), used=st.integers(0, 250))
def test_a_constant_backlog_leads_one_way_to_one_size(rule: ElasticSlots, size: int, eligible: int, used: int) -> None:
    """Under what stays as it is the size goes one way, and then no further."""
    begun = min(max(size, rule.least), rule.most)
    sizes = run(rule, [Look(eligible, used)] * 60, begun)
    assert turns([begun, *sizes]) == 0
    assert len(set(sizes[40:])) == 1
    if rule.side(eligible) is Side.ABOVE:
        assert sizes[-1] == rule.most
    elif rule.side(eligible) is Side.BELOW:
        assert sizes[-1] == min(begun, max(rule.least, used))


@given(rate=st.floats(1, 80), size=st.integers(1, 100), backlog=st.integers(0, 20_000))
def test_a_constant_load_is_met_without_flapping(rate: float, size: int, backlog: int) -> None:
    """Jobs of 1 s that come at a constant rate: the size turns once at most, and in the end the slots keep up."""
    rule, standing, waiting = ElasticSlots(1, 100), Standing(size), float(backlog)
    sizes = []
    for _ in range(400):
        # 30 s between two looks
        done = min(waiting + rate * 30, standing.size * 30.0)
        waiting += rate * 30 - done
        used = standing.size if waiting >= 1 else min(standing.size, int(done / 30) + 1)
        standing, _ = judge(rule, standing, Look(int(waiting), used))
        sizes.append(standing.size)
    assert turns([size, *sizes]) <= 1
    # The backlog may still be on its way to the mark, however slowly.
    assert sizes[-1] >= rate or waiting <= rule.grow_above + LOOKS_IN_A_ROW * rate * 30


def test_one_look_above_the_mark_changes_nothing() -> None:
    """A backlog that is gone at the next look is no reason to grow."""
    rule = ElasticSlots(5, 50)
    assert LOOKS_IN_A_ROW == 2
    assert run(rule, [Look(5_000, 10), Look(500, 10)] * 10, 10) == [10] * 20
    assert run(rule, [Look(5_000, 10)] * 2, 10) == [10, 15]


def test_the_direction_is_not_turned_at_once() -> None:
    """After it grew it does not shrink before so many looks have passed."""
    rule = ElasticSlots(5, 50)
    sizes = run(rule, [Look(5_000, 10)] * 2 + [Look(0, 0)] * 8, 10)
    assert sizes[1 : 1 + TURN_LOOKS] == [15] * TURN_LOOKS
    assert sizes[1 + TURN_LOOKS] == 10


def test_a_backlog_that_swings_at_each_look_changes_nothing() -> None:
    """Full and empty in turn."""
    assert set(run(ElasticSlots(5, 50), [Look(5_000, 10), Look(0, 0)] * 20, 10)) == {10}


def test_it_says_that_a_limit_holds_it() -> None:
    """At a limit a large backlog is held; once the limit is gone, looks are counted anew."""
    rule, standing = ElasticSlots(5, 50), Standing(10)
    for look in [Look(5_000, 10, limited=True), Look(5_000, 10, room=0)]:
        standing, move = judge(rule, standing, look)
        assert (standing.size, move) == (10, Move.HELD)
    assert run_on(rule, standing, [Look(5_000, 10)] * 2) == [10, 15]


def run_on(rule: ElasticSlots, standing: Standing, looks: list[Look]) -> list[int]:
    """Return the sizes after looks, from a standing on."""
    sizes = []
    for look in looks:
        standing, _ = judge(rule, standing, look)
        sizes.append(standing.size)
    return sizes


def test_it_grows_into_the_room_under_a_cap_and_no_further() -> None:
    """A cap of 12 over what has 10 slots: two more."""
    assert run(ElasticSlots(5, 50), [Look(5_000, 10, room=2)] * 2, 10) == [10, 12]


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"max_slots": 0}, "max_slots"),
        ({"max_slots": "9"}, "max_slots"),
        ({"max_slots": 9, "min_slots": 10}, "min_slots"),
        ({"max_slots": 9, "start_slots": 10}, "start_slots"),
        ({"max_slots": 9, "min_slots": 3, "start_slots": 2}, "start_slots"),
        ({"max_slots": 9, "grow_above": 50}, "shrink_below"),
        ({"max_slots": 9, "shrink_below": -1}, "shrink_below"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(options: dict[str, int], field: str) -> None:
    """The error names the field."""
    most = options.pop("max_slots")
    with pytest.raises(InvalidInputError) as refused:
        ElasticSlots.parse(most, **options)  # type: ignore[arg-type]
    assert refused.value.field == field
