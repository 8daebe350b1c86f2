"""Values that become numbers, texts, lists, objects and points in time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.nodes import conversions
from headrace.nodes.moments import moment_of

EAST = timezone(timedelta(hours=2))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((5, 5), (2.5, 2.5), ("5", 5), (" -7 ", -7), ("+1", 1), ("1e3", 1000), (".5", 0.5), ("5.", 5), ("0x1F", 31)),
        *(("0b101", 5), ("0o17", 15), ("", 0), (" \n", 0), (True, 1), (False, 0), ([], 0), (["8"], 8), ([None], 0)),
        *(
            (None, None),
            ("five", None),
            ("1,5", None),
            ("1_0", None),
            ("NaN", None),
            ("Infinity", None),
            ("1e999", None),
        ),
        *(({}, None), ([1, 2], None), ([[1]], None), ("9" * 401, None), ("٣", None)),
        ("12345678901234567890", 12345678901234567890),
    ],
)
def test_numbers(value: Any, expected: Any) -> None:
    """What JavaScript's Number() takes is a number, but no words for none and too large ones."""
    found = conversions.number_of(value)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *(("a", "a"), (5, "5"), (5.0, "5"), (0.1, "0.1"), (1e21, "1e+21"), (True, "true"), (None, "null")),
        *((10**400, "1" + "0" * 400), (-(10**30), "-1e+30"), ([10**400], f"[{10**400}]")),
        *(([1.0, "ä"], '[1,"ä"]'), ({"a": {"b": 2.0}}, '{"a":{"b":2}}')),
    ],
)
def test_texts(value: Any, expected: str) -> None:
    """Numbers are written as JavaScript does, lists and objects as JSON."""
    assert conversions.text_of(value) == expected


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**5000], ids=["infinite", "none", "long"])
def test_numbers_that_cannot_be_written(value: float) -> None:
    """What JSON does not have, or nobody can read, is an error of input and nothing else."""
    with pytest.raises(InvalidInputError, match="must be a number that can be written"):
        conversions.text_of(value)


@pytest.mark.parametrize(
    "text", ["", "[1", "NaN", "[Infinity]", "[1e999]", '{"a": -1e999}', "[" * 100_000, "{'a': 'it's'}", "1"]
)
@pytest.mark.parametrize("kind", [list, dict])
def test_texts_that_are_no_json(text: str, kind: type) -> None:
    """They are no list and no object, whatever they are, and no trouble."""
    assert conversions.parsed(text, kind) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2026-03-05T12:00:00.5Z", datetime(2026, 3, 5, 12, 0, 0, 500_000, UTC)),
        ("2026-03-05T12:00:00+01:00", datetime(2026, 3, 5, 11, tzinfo=UTC)),
        (" 2026-03-05 12:00 ", datetime(2026, 3, 5, 12, tzinfo=EAST)),
        ("2026-03-05", datetime(2026, 3, 5, tzinfo=EAST)),
        ("2026-03", datetime(2026, 3, 1, tzinfo=EAST)),
        ("2026", datetime(2026, 1, 1, tzinfo=EAST)),
        ("Thu, 05 Mar 2026 12:00:00 GMT", datetime(2026, 3, 5, 12, tzinfo=UTC)),
        ("Mar 5, 2026", datetime(2026, 3, 5, tzinfo=EAST)),
        ("3/5/2026 14:30", datetime(2026, 3, 5, 14, 30, tzinfo=EAST)),
        (1772712000000, datetime(2026, 3, 5, 12, tzinfo=UTC)),
        (0, datetime(1970, 1, 1, tzinfo=UTC)),
    ],
)
def test_points_in_time(value: Any, expected: datetime) -> None:
    """Numbers are milliseconds; what has no zone is in the one that is given."""
    assert moment_of(value, EAST) == expected


@pytest.mark.parametrize("value", ["", "soon", "2026-13-01", "12", "x" * 100, True, None, [], {}, 1e300, float("nan")])
def test_what_is_no_point_in_time(value: Any) -> None:
    """Nothing is guessed."""
    assert moment_of(value, UTC) is None


def test_values_that_are_nested_too_deeply_are_refused() -> None:
    """The error says how deep they may be."""
    elements: Any = []
    members: Any = {}
    for _ in range(70):
        elements, members = [elements], {"a": members}
    for convert in (conversions.text_of, conversions.fingerprint):
        for value in (elements, members):
            with pytest.raises(InvalidInputError, match="must be nested at most 64 levels deep"):
                convert(value)
