"""The small values of the core: progress, policies, states, errors."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model import errors
from headrace.model.batch import ClosePolicy, Progress
from headrace.model.errors import HeadraceError, InvalidInputError
from headrace.model.job import JobState


@pytest.mark.parametrize(
    ("progress", "done", "percent"),
    [
        (Progress(total=None), 0, 0),
        (Progress(total=None, succeeded=5), 5, 0),
        (Progress(total=0), 0, 100),
        (Progress(total=3, succeeded=1, waiting=2), 1, 33),
        (Progress(total=3, succeeded=1, failed=1, running=1), 2, 67),
        (Progress(total=4, succeeded=1, failed=1, cancelled=2), 4, 100),
        (Progress(total=1_000, succeeded=4, waiting=996), 4, 0),
    ],
)
def test_progress_adds_up(progress: Progress, done: int, percent: int) -> None:
    """Final items are done whatever became of them; nothing divides by zero."""
    assert (progress.done, progress.percent) == (done, percent)


def test_policies_say_how_many_may_fail() -> None:
    """Always tolerates all, fail-fast none, a threshold its number."""
    policies = (ClosePolicy.always(), ClosePolicy.fail_fast(), ClosePolicy.threshold(3))

    assert [policy.max_failed for policy in policies] == [None, 0, 3]


@pytest.mark.parametrize("allowed", [-1, 1.5, "3", True, []])
def test_bad_thresholds_are_refused(allowed: Any) -> None:
    """A threshold is a whole number, not negative."""
    with pytest.raises(InvalidInputError, match="max_failed"):
        ClosePolicy.threshold(allowed)


def test_three_states_are_final() -> None:
    """Succeeded, failed and cancelled never change again; all others may."""
    assert {state for state in JobState if state.final} == {JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED}


@pytest.mark.parametrize("kind", [value for value in vars(errors).values() if isinstance(value, type)])
def test_every_error_explains_itself(kind: type[HeadraceError]) -> None:
    """An error's docstring is its message, in one line, and its code is a word of its own for machines."""
    assert kind.__doc__
    assert kind.code.isidentifier()
    if not issubclass(kind, InvalidInputError):
        assert str(kind()) == kind.__doc__.strip()
        assert str(kind("told otherwise")) == "told otherwise"


class Unprintable:
    """A value whose repr fails."""

    def __repr__(self) -> str:
        raise ValueError("no")


def deep() -> Any:
    """Return a list too deep to be printed."""
    value: Any = []
    for _ in range(100_000):
        value = [value]
    return value


@pytest.mark.parametrize("value", ["x" * 1_000, 10**5_000, Unprintable(), deep()], ids=range(4))
def test_a_refused_value_is_shown_in_short(value: Any) -> None:
    """The message names field, rule and value; a value that is long or cannot be printed does no harm."""
    message = str(InvalidInputError("timeout", "must be shorter", value))

    assert message.startswith("timeout must be shorter, got ")
    assert len(message) < 120
