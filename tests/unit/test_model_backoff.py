"""Backoff: when a failed attempt runs again."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.backoff import Backoff
from headrace.model.error_class import ErrorClass
from headrace.model.errors import ConfigError, InvalidInputError, StoreUnavailableError
from headrace.model.provider_errors import (
    ContextTooLongError,
    InvalidRequestError,
    OverloadedError,
    ProviderUnavailableError,
    RateLimitedError,
)

SECOND = timedelta(seconds=1)


def test_fixed_waits_the_same_each_time() -> None:
    """A fixed policy waits its delay after every failure, whatever the random number."""
    policy = Backoff.fixed("5s", max_attempts=9)

    assert {policy.delay(failures=n, random=r) for n in range(1, 9) for r in (0, 0.5, 0.99)} == {5 * SECOND}


def test_exponential_doubles_its_ceiling_up_to_the_cap() -> None:
    """Full jitter: the longest wait doubles with each failure until the cap, the shortest is none."""
    policy = Backoff.exponential(base="1s", cap="10s")

    assert [policy.delay(failures=n, random=0.5) / SECOND for n in range(1, 7)] == [0.5, 1, 2, 4, 5, 5]
    assert policy.delay(failures=3, random=0) == timedelta()


@given(
    failures=st.integers(0, 1_000_000),
    random=st.floats(0, 1, exclude_max=True),
    factor=st.floats(1, 1_000),
    base=st.floats(0, 100),
    more=st.floats(0, 1e6),
)
def test_a_delay_lies_between_nothing_and_the_cap(
    failures: int, random: float, factor: float, base: float, more: float
) -> None:
    """No count of failures and no factor makes a wait negative, longer than the cap, or an overflow."""
    policy = Backoff.exponential(base=base, cap=base + more, factor=factor)

    assert timedelta() <= policy.delay(failures=failures, random=random) <= policy.cap


def test_attempts_run_out() -> None:
    """`max_attempts` counts every run: with three, two failures are tried again and the third is not."""
    policy = Backoff.fixed("1s", max_attempts=3)

    decided = [policy.decide(ValueError(), failures=n, random=0) for n in (1, 2, 3, 4)]
    assert decided == [SECOND, SECOND, None, None]
    assert Backoff.none().decide(ValueError(), failures=1, random=0) is None


def test_permanent_errors_are_never_tried_again() -> None:
    """An error of ours that says it is permanent fails at once; a transient one, or any other, is retried."""
    policy = Backoff.fixed("1s")

    assert policy.decide(ConfigError(), failures=1, random=0) is None
    assert policy.decide(StoreUnavailableError(), failures=1, random=0) == SECOND
    assert policy.decide(KeyError(), failures=1, random=0) == SECOND


def test_an_error_class_may_have_its_own_policy() -> None:
    """The nearest class of the error decides: its own policy with its own attempts, or failing at once."""
    policy = (
        Backoff.fixed("1s", max_attempts=2)
        .on(LookupError, Backoff.fixed("9s", max_attempts=5))
        .on(IndexError, None)
        .on(ConfigError, Backoff.fixed("3s"))
    )

    assert policy.decide(ValueError(), failures=2, random=0) is None
    assert policy.decide(KeyError(), failures=4, random=0) == 9 * SECOND
    assert policy.decide(IndexError(), failures=1, random=0) is None
    assert policy.decide(ConfigError(), failures=1, random=0) == 3 * SECOND


def test_the_last_word_on_an_error_counts() -> None:
    """Saying something else of the same class replaces what was said before, in both directions."""
    never, again = (lambda p: p.on(KeyError, None)), (lambda p: p.on(KeyError, Backoff.fixed("2s")))
    policy = Backoff.fixed("1s")

    assert again(never(policy)).decide(KeyError(), failures=1, random=0) == 2 * SECOND
    assert never(again(policy)).decide(KeyError(), failures=1, random=0) is None
    assert policy.decide(KeyError(), failures=1, random=0) == SECOND


def test_retry_after_is_a_floor() -> None:
    """What a provider asks to wait is waited, also beyond the cap; a longer backoff stays longer."""
    policy = Backoff.fixed("5s")

    asked = RateLimitedError(retry_after=timedelta(minutes=3))
    assert policy.decide(asked, failures=1, random=0) == timedelta(minutes=3)
    assert policy.decide(RateLimitedError(retry_after=SECOND), failures=1, random=0) == 5 * SECOND


@pytest.mark.parametrize(
    ("field", "options"),
    [
        ("max_attempts", {"max_attempts": 0}),
        ("max_attempts", {"max_attempts": 101}),
        ("max_attempts", {"max_attempts": 2.5}),
        ("max_attempts", {"max_attempts": "3"}),
        ("max_attempts", {"max_attempts": True}),
        ("factor", {"factor": 0.5}),
        ("factor", {"factor": float("nan")}),
        ("factor", {"factor": float("inf")}),
        ("base", {"base": "soon"}),
        ("base", {"base": -1}),
        ("cap", {"base": "5m", "cap": "1m"}),
        ("cap", {"cap": float("nan")}),
    ],
)
def test_bad_policies_are_refused(field: str, options: dict[str, Any]) -> None:
    """A policy that makes no sense is refused when it is made, with the name of the field."""
    with pytest.raises(InvalidInputError, match=field):
        Backoff.exponential(**options)


def test_a_negative_base_is_refused_everywhere() -> None:
    """A policy made without the short forms is checked as well."""
    with pytest.raises(InvalidInputError, match="base"):
        Backoff(base=-SECOND)
    with pytest.raises(InvalidInputError, match="delay"):
        Backoff.fixed(-1)


def test_a_word_stands_for_every_error_of_its_class() -> None:
    """A policy by `ErrorClass`, or by its word, counts for each error that carries it, whichever exception it is."""

    class OwnError(Exception):
        """A handler's own error, sorted by its author."""

        error_class = "overloaded"

    policy = Backoff.fixed("1s").on("overloaded", Backoff.fixed("30s")).on(ErrorClass.PROVIDER_DOWN, None)

    assert policy.decide(OverloadedError(), failures=1, random=0) == 30 * SECOND
    assert policy.decide(OwnError(), failures=1, random=0) == 30 * SECOND
    assert policy.decide(ProviderUnavailableError(), failures=1, random=0) is None
    assert policy.decide(RateLimitedError(), failures=1, random=0) == SECOND


def test_the_nearest_class_decides() -> None:
    """A word counts for the kinds of its errors too, unless they have a policy of their own; the last word counts."""
    policy = Backoff.fixed("1s").on("invalid_request", Backoff.fixed("5s"))

    assert policy.decide(ContextTooLongError(), failures=1, random=0) == 5 * SECOND
    assert policy.on("context_too_long", None).decide(ContextTooLongError(), failures=1, random=0) is None
    assert policy.on(ContextTooLongError, None).decide(ContextTooLongError(), failures=1, random=0) is None
    assert policy.on("invalid_request", None).decide(InvalidRequestError(), failures=1, random=0) is None
    again = policy.on("invalid_request", None).on("invalid_request", Backoff.fixed("7s"))
    assert again.decide(InvalidRequestError(), failures=1, random=0) == 7 * SECOND


def test_a_word_that_is_none_is_refused() -> None:
    """A typing error is said when the policy is made, with the words there are."""
    with pytest.raises(InvalidInputError, match=r"rate_limited, overloaded.*got 'rate_limit'"):
        Backoff().on("rate_limit", None)
