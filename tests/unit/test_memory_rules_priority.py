"""Memory: what goes first, by user, age, kind and retries; and that nothing waits for ever."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from math import inf, nan
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import InvalidInputError
from headrace.apps.memory.rules.breakers import BREAKERS
from headrace.apps.memory.rules.priority import KIND_WEIGHTS, LEAST_SCORES, MOST_LEVEL, priority_of, score
from headrace.model.breaker import BreakerRecord, BreakerReport, BreakerState, record_call
from headrace.model.priority import HEAD_START_SECONDS, Priority, head_start

MINUTE = timedelta(minutes=1)
LEVELS, RETRIES = st.integers(0, MOST_LEVEL), st.integers(0, 20)
AGES = st.timedeltas(timedelta(hours=-1), timedelta(days=400))
KINDS = st.sampled_from(sorted(KIND_WEIGHTS))


@pytest.mark.parametrize(
    ("level", "minutes", "kind", "retries", "expected"),
    [
        (0, 10, "consume", 0, 1.0),
        (0, 10, "buffer", 0, 1.2),
        (0, 10, "process", 0, 1.5),
        (0, 10, "storage", 0, 0.8),
        (5, 10, "consume", 0, 1.5),
        (0, 4.99, "consume", 0, 1.5),
        (0, 5, "consume", 0, 1.0),
        (0, 60, "consume", 0, 1.0),
        (0, 60.01, "consume", 0, 0.5),
        (0, 10, "consume", 2, 0.81),
        (10, 1, "process", 3, 2 * 1.5 * 1.5 * 0.729),
        (0, -3, "consume", 0, 1.5),
    ],
)
def test_the_score_is_the_product_of_its_factors(
    level: int, minutes: float, kind: str, retries: int, expected: float
) -> None:
    """Each factor at its bounds: level, freshness, kind and retries."""
    assert score(level, minutes * MINUTE, kind, retries) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("arguments", "field"),
    [
        ((-1, MINUTE, "process", 0), "level"),
        ((MOST_LEVEL + 1, MINUTE, "process", 0), "level"),
        ((True, MINUTE, "process", 0), "level"),
        ((1.5, MINUTE, "process", 0), "level"),
        ((0, MINUTE, "read", 0), "kind"),
        ((0, MINUTE, "process", -1), "retries"),
        ((0, MINUTE, "process", True), "retries"),
    ],
)
def test_what_has_no_score_is_refused_by_name(arguments: tuple[int, timedelta, str, int], field: str) -> None:
    """A level out of bounds, an unknown kind, negative retries."""
    with pytest.raises(InvalidInputError, match=field):
        score(*arguments)


@given(level=LEVELS, age=AGES, kind=KINDS, retries=RETRIES)
def test_more_urgent_factors_never_make_a_later_class(level: int, age: timedelta, kind: str, retries: int) -> None:
    """A higher level, a younger message or fewer retries score as high at least, and classes follow scores."""
    own = score(level, age, kind, retries)
    better = [
        score(min(level + 1, MOST_LEVEL), age, kind, retries),
        score(level, age - MINUTE, kind, retries),
        score(level, age, kind, max(retries - 1, 0)),
    ]
    assert all(other >= own and priority_of(other) <= priority_of(own) for other in better)


def test_classes_are_those_of_headrace() -> None:
    """The least score of each class is of it, the next lower one is not; all ten classes are reached."""
    assert [priority_of(least) for least in LEAST_SCORES] == list(range(9))
    assert [priority_of(least - 1e-9) for least in LEAST_SCORES] == list(range(1, 10))
    assert priority_of(0) == Priority.BULK
    assert priority_of(score(0, MINUTE, "process", 0)) == Priority.HIGH


@pytest.mark.parametrize("value", [-0.1, nan, inf, True, "1"])
def test_a_class_needs_a_finite_score(value: float) -> None:
    """What is no score is named, and gets no class."""
    with pytest.raises(InvalidInputError, match="score"):
        priority_of(value)


@given(
    old=st.tuples(LEVELS, AGES, KINDS, RETRIES), new=st.tuples(LEVELS, AGES, KINDS, RETRIES), later=st.integers(0, 1200)
)
def test_an_old_job_is_overtaken_only_within_its_head_start(
    old: tuple[int, timedelta, str, int], new: tuple[int, timedelta, str, int], later: int
) -> None:
    """Whatever the scores: what becomes ready ten minutes after a job does not go before it."""
    ready = datetime(2026, 5, 1, tzinfo=UTC)
    first, second = priority_of(score(*old)), priority_of(score(*new))
    overtakes = ready + timedelta(seconds=later) - head_start(second) < ready - head_start(first)
    assert overtakes == (later < HEAD_START_SECONDS[second] - HEAD_START_SECONDS[first])
    assert not (overtakes and later >= HEAD_START_SECONDS[Priority.INTERACTIVE])


@pytest.mark.parametrize("kind", sorted(KIND_WEIGHTS))
def test_a_breaker_opens_at_more_than_half_of_more_than_ten(kind: str) -> None:
    """Ten failures leave it closed, however they come; of eleven calls six open it, and five do not."""
    assert _after(kind, [False] * 10) is BreakerState.CLOSED
    assert _after(kind, [True] * 6 + [False] * 5) is BreakerState.CLOSED
    assert _after(kind, [True] * 5 + [False] * 6) is BreakerState.OPEN


def _after(kind: str, calls: list[bool]) -> BreakerState:
    rule, record, now = BREAKERS[kind].rule, BreakerRecord(), datetime(2026, 5, 1, tzinfo=UTC)
    for number, succeeded in enumerate(calls):
        record = record_call(rule, record, BreakerReport(kind, UUID(int=number), 1, succeeded), now)
    return record.state
