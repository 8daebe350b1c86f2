"""The scale signal: the pure rule heeds its bounds and what binds, follows the backlog, and does not flap."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import InvalidInputError
from headrace.model.scale_values import HOLDS, Binding, Load, ScaleReason, ScaleSignal, ScalingRule
from headrace.model.scaling import scale

RULES = st.builds(
    lambda bounds, seconds: ScalingRule(bounds[0], max(1, bounds[1]), timedelta(seconds=seconds)),
    st.tuples(st.integers(0, 60), st.integers(0, 60)).map(sorted), st.integers(1, 600),
)  # fmt: skip
BINDINGS = st.builds(Binding, st.sampled_from(sorted(HOLDS)), st.sampled_from(["a", "openai:gpt-x"]))
LOADS = st.builds(
    lambda waiting, **facts: Load(waiting=waiting + facts["eligible"], **facts),
    st.integers(0, 500), eligible=st.integers(0, 20_000), running=st.integers(0, 500), live_workers=st.integers(0, 80),
    slots=st.floats(1, 100), seconds_per_job=st.none() | st.floats(0, 1_000), room=st.none() | st.integers(0, 1_000),
    held_by=st.none() | st.just("cap queue:mail"), binding=st.none() | BINDINGS, paused=st.booleans(),
)  # fmt: skip
BURST = Load(eligible=600, running=10, waiting=600, live_workers=1, seconds_per_job=2.0)


def wanted(rule: ScalingRule, load: Load) -> int:
    """Return the wanted workers alone."""
    return scale("mail", rule, load).wanted_workers


def ask(rule: ScalingRule | None = None, **facts: object) -> ScaleSignal:
    """Return the signal of the burst, changed."""
    return scale("mail", rule or ScalingRule(), replace(BURST, **facts))  # type: ignore[arg-type]


@given(rule=RULES, load=LOADS)
def test_it_stays_within_its_bounds_and_says_why(rule: ScalingRule, load: Load) -> None:
    """Whatever is seen; the sentence is one line."""
    signal = scale("mail", rule, load)
    assert rule.min_workers <= signal.wanted_workers <= rule.max_workers
    assert signal.sentence
    assert "\n" not in signal.sentence


@given(rule=RULES, load=LOADS, binding=BINDINGS)
def test_it_never_grows_where_a_quota_a_budget_or_a_breaker_binds(
    rule: ScalingRule, load: Load, binding: Binding
) -> None:
    """No more workers than there are, but for the fewest that are always wanted; nor fewer, unless it is paused."""
    bound = replace(load, binding=binding)
    assert wanted(rule, bound) <= max(load.live_workers, rule.min_workers)
    if not load.paused:
        assert wanted(rule, bound) >= min(load.live_workers, rule.max_workers)


@given(rule=RULES, load=LOADS, more=st.integers(0, 20_000))
def test_a_larger_backlog_never_wants_fewer(rule: ScalingRule, load: Load, more: int) -> None:
    """Of two loads that differ in what could start."""
    larger = replace(load, eligible=load.eligible + more, waiting=load.waiting + more)
    assert wanted(rule, larger) >= wanted(rule, load)


@given(rule=RULES, load=LOADS)
def test_it_asks_for_no_slots_beyond_the_room(rule: ScalingRule, load: Load) -> None:
    """Caps and units bound what is added to what runs, and so does the number of jobs; nothing is added when paused."""
    more = scale("mail", rule, load).needed_slots - load.running
    assert more <= load.eligible
    assert load.room is None or more <= load.room
    assert not load.paused or more == 0


@given(rule=RULES, load=LOADS)
def test_to_nobody_only_where_nothing_runs_or_waits(rule: ScalingRule, load: Load) -> None:
    """What is held now may start in a moment."""
    free = replace(load, binding=None, paused=False)
    if wanted(rule, free) == 0:
        assert (rule.min_workers, load.running, load.waiting) == (0, 0, 0)


@given(rule=RULES, load=LOADS)
def test_it_settles(rule: ScalingRule, load: Load) -> None:
    """Once as many live as were wanted, and nothing else has changed, as many are wanted: it does not go to and fro."""
    first = wanted(rule, load)
    assert wanted(rule, replace(load, live_workers=first)) == first


@pytest.mark.parametrize(
    ("load", "count", "reason"),
    [
        # 10 run, and 600 of 2 s each are 20 slots for a minute.
        ({}, 3, ScaleReason.BACKLOG),
        ({"seconds_per_job": 20.0}, 10, ScaleReason.MAX),
        # Nobody knows how long they take: a slot for each.
        ({"eligible": 45, "seconds_per_job": None}, 6, ScaleReason.BACKLOG),
        # Longer than a minute: a slot for each, and no more.
        ({"eligible": 45, "seconds_per_job": 900.0}, 6, ScaleReason.BACKLOG),
        ({"room": 5}, 2, ScaleReason.ROOM),
        ({"live_workers": 3}, 3, ScaleReason.ENOUGH),
        ({"live_workers": 4}, 4, ScaleReason.ENOUGH),
        ({"live_workers": 5}, 3, ScaleReason.IDLE),
        ({"live_workers": 6, "paused": True}, 1, ScaleReason.PAUSED),
        ({"live_workers": 0, "running": 0, "eligible": 0, "waiting": 0}, 1, ScaleReason.MIN),
        ({"live_workers": 12}, 3, ScaleReason.IDLE),
        ({"eligible": 0, "held_by": "cap queue:mail"}, 1, ScaleReason.ROOM),
    ],
)  # fmt: skip
def test_what_is_wanted_and_why(load: dict[str, object], count: int, reason: ScaleReason) -> None:
    """By hand."""
    signal = ask(**load)
    assert (signal.wanted_workers, signal.reason) == (count, reason)


@pytest.mark.parametrize("kind", sorted(HOLDS))
def test_what_binds_keeps_as_many_as_there_are(kind: ScaleReason) -> None:
    """And is named."""
    signal = ask(binding=Binding(kind, "the-name"), live_workers=4)
    assert (signal.wanted_workers, signal.reason) == (4, kind)
    assert "the-name" in signal.sentence
    assert "4 workers" in signal.sentence


def test_the_fewest_are_wanted_whatever_binds() -> None:
    """They are what a user asked for at any rate: without a worker nothing would try a breaker again."""
    signal = ask(ScalingRule(2, 10), binding=Binding(ScaleReason.BREAKER, "api"), live_workers=0)
    assert (signal.wanted_workers, signal.reason) == (2, ScaleReason.MIN)


def test_from_nobody_to_one_and_back() -> None:
    """With no fewest, the first job asks for a worker, and the last one lets it go."""
    rule, empty = ScalingRule(0, 10), Load()
    assert wanted(rule, empty) == 0
    assert wanted(rule, replace(empty, eligible=1, waiting=1, seconds_per_job=0.001)) == 1
    assert wanted(rule, replace(empty, waiting=1, live_workers=1)) == 1
    assert wanted(rule, replace(empty, live_workers=1)) == 0


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"min_workers": -1}, "min_workers"),
        ({"min_workers": 11}, "min_workers"),
        ({"max_workers": 0}, "max_workers"),
        ({"max_workers": 10_001}, "max_workers"),
        ({"max_workers": True}, "max_workers"),
        ({"drain_within": 0}, "drain_within"),
        ({"drain_within": "soon"}, "drain_within"),
    ],
)
def test_wrong_rules_are_refused(options: dict[str, object], field: str) -> None:
    """Naming the field."""
    with pytest.raises(InvalidInputError) as refused:
        ScalingRule.parse(**options)  # type: ignore[arg-type]
    assert refused.value.field == field
