"""The rules by which a flow is learnt."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.learning import LEAST_FLOW, Learnt, Refusals, TokenTime, cut, grow, slow

FLOWS = st.floats(0.01, 1e6)


def test_one_refusal_takes_three_tenths() -> None:
    """Nothing is known but that it was too much."""
    learnt = cut(Learnt(100.0))
    assert learnt.flow == pytest.approx(70.0)
    assert learnt.refused == 100.0


def test_two_refusals_tell_the_flow() -> None:
    """What passed between two instants at which nothing was left is what the provider lets flow."""
    learnt = cut(Learnt(70.0, 100.0), between=60.0)
    assert learnt.flow == pytest.approx(0.98 * 60)
    assert learnt.refused == 60.0


@given(flow=FLOWS, between=st.none() | FLOWS)
def test_a_refusal_always_lowers_the_flow(flow: float, between: float | None) -> None:
    """By a twentieth at least and by four tenths at most, and never to nothing."""
    learnt = cut(Learnt(flow), between=between)
    assert max(LEAST_FLOW, 0.6 * flow) * 0.999 <= learnt.flow <= max(LEAST_FLOW, 0.95 * flow)


def test_growth_is_fast_then_slow_then_fast() -> None:
    """Back to just below what was refused in seconds, past it in many, and away from it once it is disproved."""
    learnt, flows = Learnt(70.0, 100.0), []
    for _ in range(60):
        learnt = grow(learnt, 1.0)
        flows.append(learnt.flow)
    assert flows[3] > 95
    assert flows[8] < 102
    assert flows[-1] > 130


@given(flow=st.floats(0.01, 1.0), refused=st.none() | st.floats(0.01, 1.0), seconds=st.floats(0.0, 10.0))
def test_growth_ends_at_what_the_limits_allow(flow: float, refused: float | None, seconds: float) -> None:
    """It never lowers the flow, never passes the ceiling, and what was refused is forgotten there."""
    learnt = grow(Learnt(flow, refused), seconds, ceiling=1.0)
    assert flow <= learnt.flow <= 1.0
    assert learnt.flow < 1.0 or learnt.refused is None


def test_answers_that_slow_down_are_noticed() -> None:
    """Not before enough are known, not for one slow answer, but when tokens take much longer for a while."""
    known = TokenTime()
    for _ in range(10):
        known = known.after(0.02)
    assert known.after(1.0).gradient == 1.0
    for _ in range(50):
        known = known.after(0.02)
    assert known.after(0.06).gradient == 1.0
    for _ in range(15):
        known = known.after(0.06)
    assert known.gradient < 0.8
    assert known.restarted().gradient == 1.0


@given(flow=FLOWS, gradient=st.floats(0.5, 1.0))
def test_slowness_costs_no_more_than_a_refusal(flow: float, gradient: float) -> None:
    """The flow is lowered by the gradient, by three tenths at most."""
    assert 0.7 * flow * 0.999 <= slow(Learnt(flow), gradient).flow <= flow


def test_refusals_now_and_then_are_seldom_once_calls_were_answered() -> None:
    """One call of forty is; at the beginning, or one of ten, is not."""
    few = many = Refusals()
    for number in range(400):
        few = few.after(refused=number % 40 == 39)
        many = many.after(refused=number % 10 == 9)
        assert number > 30 or not few.seldom
    assert (few.seldom, many.seldom) == (True, False)
    assert 0.01 < few.share < 0.05 < many.share < 0.2
