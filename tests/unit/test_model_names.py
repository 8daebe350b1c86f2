"""Names, keys, priorities and ids."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.ids import uuid7, uuid7s
from headrace.model.names import check_key, check_name
from headrace.model.priority import HEAD_START_SECONDS, Priority, head_start, parse_priority


@pytest.mark.parametrize("name", ["a", "0", "papers.extract_single-2", "a" * 64])
def test_good_names_are_accepted(name: str) -> None:
    """Small letters, digits, dots, dashes and underscores make a name of up to 64 characters."""
    assert check_name("queue", name) == name


@pytest.mark.parametrize(
    "name",
    ["", "A", "ä", "а", "a b", "a;b", 'a"b', "a'b", "../x", "-a", ".a", "_a", "a\n", "a\x00", "a" * 65, None, 5, b"a"],
)
def test_bad_names_are_refused(name: object) -> None:
    """Quotes, look-alikes, paths and anything longer are refused with the name of the field."""
    with pytest.raises(InvalidInputError, match="queue must match"):
        check_name("queue", name)


@pytest.mark.parametrize("key", ["k", "review-42", "é/ü 😀", "a" * 255])
def test_good_keys_are_accepted(key: str) -> None:
    """A key is any printable text of up to 255 characters."""
    assert check_key("key", key) == key


@pytest.mark.parametrize("key", ["", "a" * 256, "a\nb", "\x00", "\ud800", "\u202e", None, 5])
def test_bad_keys_are_refused(key: object) -> None:
    """Empty, overlong and unprintable keys are refused with the name of the field."""
    with pytest.raises(InvalidInputError, match="key must be 1 to 255 printable"):
        check_key("key", key)


def test_priorities_are_names_or_numbers() -> None:
    """A class is given by its name, in any case, or by a number from 0 to 9."""
    assert [parse_priority(name) for name in ("interactive", "HIGH", "standard", "low", "bulk")] == [0, 3, 5, 7, 9]
    assert [parse_priority(number) for number in range(10)] == list(range(10))
    assert parse_priority(Priority.LOW) == 7


@pytest.mark.parametrize("value", ["urgent", "", "5", -1, 10, 5.0, True, None, [], "nan"])
def test_bad_priorities_are_refused(value: object) -> None:
    """Anything else is refused, and the message names the classes."""
    with pytest.raises(InvalidInputError, match="priority must be one of interactive, high, standard, low, bulk"):
        parse_priority(value)  # type: ignore[arg-type]


def test_head_starts_fall_with_the_number() -> None:
    """A smaller number has the longer head start; bulk has none."""
    assert list(HEAD_START_SECONDS) == sorted(set(HEAD_START_SECONDS), reverse=True)
    assert head_start(Priority.BULK) == timedelta()
    assert head_start(Priority.INTERACTIVE) == timedelta(minutes=10)


@pytest.mark.parametrize("make", [lambda count: [uuid7() for _ in range(count)], uuid7s], ids=["one", "many"])
def test_ids_are_version_7_of_the_rfc(make: Callable[[int], list[UUID]]) -> None:
    """An id says its version and variant, and all of its other bits but the time are random."""
    ids = make(2_000)

    assert {(made.version, made.variant) for made in ids} == {(7, "specified in RFC 4122")}
    assert len(set(ids)) == len(ids)
    random_bits = 0
    for made in ids[1:]:
        random_bits |= (made.int ^ ids[0].int) & ((1 << 80) - 1)
    assert random_bits == ((0xFFF << 64) | ((1 << 62) - 1))


def test_ids_made_together_ascend() -> None:
    """Ids of one call sort in the order they are returned in, and are UUIDs like any other."""
    ids = uuid7s(1_000)

    assert ids == sorted(set(ids))
    assert [UUID(str(made)) for made in ids] == ids
    assert {hash(UUID(str(made))) for made in ids} == set(map(hash, ids))
    assert uuid7s(0) == []


def test_ids_carry_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first 48 bits are the milliseconds since 1970, so that later ids sort behind earlier ones."""
    made: list[UUID] = []
    for milliseconds in (1, 2, 1_767_225_600_000, 1_767_225_600_001):
        monkeypatch.setattr("time.time_ns", lambda ms=milliseconds: ms * 1_000_000)
        made.append(uuid7())
        assert made[-1].int >> 80 == milliseconds

    assert made == sorted(made)
