"""Durations as people write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.durations import format_duration, parse_duration
from headrace.model.errors import InvalidInputError


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("2m", 120), ("1h30m", 5_400), ("7d", 604_800), ("250ms", 0.25), ("1.5h", 5_400), ("0s", 0),
     ("1d2h3m4s5ms", 93_784.005), (3, 3), (0.25, 0.25), (timedelta(minutes=1), 60)],
)  # fmt: skip
def test_durations_are_read(text: str | float | timedelta, seconds: float) -> None:
    """Texts with units, bare seconds and timedeltas are understood."""
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    ["", "1", "s", "1 s", "-1s", "1e3s", "1.s", ".5s", "1S", "1s\n", "٣s", "nan", "1w", "s1", None, True, [], b"1s",
     float("nan"), float("inf"), 1e300, 10**400, "9" * 400 + "d", "99999999999d", -1, -0.001,
     timedelta(seconds=-1), timedelta(days=100_000)],
)  # fmt: skip
def test_what_is_no_duration_is_refused(value: object) -> None:
    """Anything else is refused with the name of its field, never with another error."""
    with pytest.raises(InvalidInputError, match="lease"):
        parse_duration(value, field="lease")  # type: ignore[arg-type]


@given(st.integers(0, 100 * 365 * 86_400_000).map(lambda milliseconds: timedelta(milliseconds=milliseconds)))
def test_what_is_written_is_read_back(value: timedelta) -> None:
    """Every duration of whole milliseconds survives being written and read."""
    assert parse_duration(format_duration(value)) == value


def test_durations_are_written_short() -> None:
    """The text has no empty parts, and zero is `0s`."""
    assert [format_duration(timedelta(seconds=s)) for s in (0, 0.5, 90, 5_400, 86_400)] == [
        "0s", "500ms", "1m30s", "1h30m", "1d",
    ]  # fmt: skip
