"""Fingerprints: errors that differ only in their data are one, others are not."""

from __future__ import annotations

from pathlib import PurePosixPath
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.fingerprint import LENGTH, LOOKED_AT, fingerprint, normalise_message
from tests.effort import bounded_work

_NAMES = st.text("abcdefgh_", min_size=1, max_size=8)
_DIGITS = st.integers(0, 10**12).map(str)
_SLOTS = {
    "number": st.integers(-(10**9), 10**9).map(str) | st.floats(allow_nan=False, allow_infinity=False).map(repr),
    "uuid": st.uuids().map(str) | st.uuids().map(lambda one: one.hex),
    "instant": st.datetimes().map(lambda at: at.isoformat()) | st.datetimes().map(lambda at: f"{at.isoformat(' ')}Z"),
    "quoted": st.text("abc XYZ019/.:,-", max_size=20).flatmap(lambda text: st.sampled_from([f"'{text}'", f'"{text}"'])),
    "path": st.lists(_NAMES, min_size=1, max_size=5).map(lambda parts: str(PurePosixPath("/", *parts))),
    "id": st.tuples(_DIGITS, st.uuids()).map(lambda pair: f"7{pair[1].hex[:8]}"),
    "address": st.tuples(_NAMES, _DIGITS).map(lambda pair: f"https://{pair[0]}.example/{pair[1]}?q={pair[0]}"),
}
_WORDS = st.lists(st.sampled_from(["card", "timed out", "after", "for user", "in", "can't be read:", "at"]), min_size=1)


@st.composite
def _two_messages(draw: st.DrawFn) -> tuple[str, str]:
    """Draw one message twice, with other data in it."""
    texts: tuple[list[str], list[str]] = ([], [])
    for words in draw(_WORDS):
        slot = _SLOTS[draw(st.sampled_from(sorted(_SLOTS)))]
        for text in texts:
            text.append(f"{words} {draw(slot)}")
    return ", ".join(texts[0]), ", ".join(texts[1])


@given(_two_messages())
def test_errors_that_differ_in_data_are_one(messages: tuple[str, str]) -> None:
    """Numbers, ids, UUIDs, instants, quoted text, addresses and paths make no difference."""
    first, second = messages
    assert normalise_message(first) == normalise_message(second)
    assert fingerprint("t", "E", first) == fingerprint("t", "E", second)


@given(st.text(), st.text(max_size=5), st.text(max_size=5))
def test_any_text_has_a_fingerprint(message: str, task: str, kind: str) -> None:
    """Whatever a message holds, its fingerprint is short hexadecimal text, the same each time."""
    name = fingerprint(task, kind, message)
    assert len(name) == LENGTH
    assert int(name, 16) >= 0
    assert name == fingerprint(task, kind, message)


@given(st.lists(st.integers(), min_size=1), st.lists(st.integers(), min_size=1))
def test_lists_of_any_length_are_alike(first: list[int], second: list[int]) -> None:
    """How many values a message lists makes no difference."""
    assert normalise_message(f"items {first} are wrong") == normalise_message(f"items {second} are wrong")


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("a", "E", "no answer"), ("b", "E", "no answer")),
        (("a", "E", "no answer"), ("a", "F", "no answer")),
        (("a", "E", "no answer"), ("a", "E", "no question")),
        (("a", "E", "read 3 of 4"), ("a", "E", "wrote 3 of 4")),
        (("a", "bc", ""), ("ab", "c", "")),
    ],
)
def test_other_errors_are_others(first: tuple[str, str, str], second: tuple[str, str, str]) -> None:
    """Another task, kind or wording is another fingerprint."""
    assert fingerprint(*first) != fingerprint(*second)


@pytest.mark.parametrize(
    ("message", "normal"),
    [
        ("can't find user's file 'a b' in rock 'n' roll", "can't find user's file * in rock * roll"),
        ("req_8f3ab21c was refused", "req_* was refused"),
        ("[Errno 2] No such file: '/tmp/x'", "[errno *] no such file: *"),
        ("C:\\data\\x.txt is gone", "* is gone"),
        ("cannot decode data/2031/page1.png", "cannot decode *"),
        ("read/write error and/or worse", "read/write error and/or worse"),
        ("at 2031-01-31T14:03:05.123+00:00 from 10.0.0.1:5432", "at * from *"),
        ("unterminated 'text that goes on", "unterminated *"),
        (f"user {UUID(int=7)} of ann@mail.example", "user * of *"),
        ("deadline exceeded", "deadline exceeded"),
        ("", ""),
    ],
)
def test_messages_are_normalised_by_the_documented_rule(message: str, normal: str) -> None:
    """What tells one job from another becomes a star; words stay."""
    assert normalise_message(message) == normal


@pytest.mark.parametrize("piece", ["a", "a-", ".", "'\\", "a/", "1.", "+", "http:", "'a", "0x", "a@", "\\", "4-", " "])
def test_no_message_takes_long(piece: str) -> None:
    """Text made to make patterns go back again and again is normalised in milliseconds."""
    with bounded_work(0.5):
        normalise_message(piece * LOOKED_AT)
