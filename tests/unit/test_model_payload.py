"""Payloads: what JSON is accepted, and how large it may be."""

from __future__ import annotations

import json
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.engine.codec import TaskCodec
from headrace.model.errors import InvalidInputError, PayloadTooLargeError
from headrace.model.payload import MAX_DEPTH, MAX_PAYLOAD_BYTES, encode_json, encode_scalar, hash_text

texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


def nested(depth: int) -> Any:
    """Return lists and objects nested `depth` deep."""
    value: Any = 1
    for level in range(depth):
        value = [value] if level % 2 else {"in": value}
    return value


@given(values)
def test_what_is_json_is_kept(value: Any) -> None:
    """Every JSON value is accepted as compact text and read back equal."""
    text = encode_json(value, field="arguments")

    assert json.loads(text) == value
    assert "\n" not in text


def circle() -> Any:
    """Return a list that holds itself."""
    value: list[Any] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        (float("nan"), "must be JSON"),
        ({"a": [float("inf")]}, "must be JSON"),
        ({1, 2}, "must be JSON"),
        (b"bytes", "must be JSON"),
        (object(), "must be JSON"),
        ({(1, 2): 3}, "must be JSON"),
        (circle(), "must be JSON"),
        (10**5_000, "must be JSON"),
        ("a\x00b", "NUL"),
        ({"\x00": 1}, "NUL"),
        ({"a": ["\\\x00"]}, "NUL"),
        ("\ud800", "lone surrogates"),
        ({"\udfff": 1}, "lone surrogates"),
        (nested(MAX_DEPTH + 1), "nested deeper"),
        (nested(900), "nested deeper"),
        (nested(100_000), "nested deeper"),
    ],
    ids=range(16),
)
def test_bad_payloads_are_refused(value: Any, rule: str) -> None:
    """What no store accepts is refused with the field and the rule, never with another error."""
    with pytest.raises(InvalidInputError, match=f"arguments.*{rule}"):
        encode_json(value, field="arguments")


@pytest.mark.parametrize(
    ("value", "named"),
    [([object()], "object"), ({"a": [1, {"b": {2}}]}, "set"), ([1, float("nan")], "float"), ({(1, 2): 3}, "dict"),
     (circle(), "list")],
)  # fmt: skip
def test_what_is_not_json_is_named_by_its_own_type(value: Any, named: str) -> None:
    """Not the list or mapping around it, which is fine, but what stands in there."""
    with pytest.raises(InvalidInputError, match=rf"must be JSON \(.*, got '{named}'$"):
        encode_json(value, field="arguments")


@pytest.mark.parametrize("spread", [False, True])
def test_an_item_that_is_not_json_is_named_by_its_own_type(spread: bool) -> None:
    """An error of a stream names the position and the type of the item, or of its argument."""
    codec = TaskCodec(lambda value: None)
    items = iter([{"value": 1}, {"value": object()}] if spread else [1, object()])
    with pytest.raises(InvalidInputError, match=r"^item 1 must be JSON \(.*, got 'object'$"):
        list(codec.encode_items(items, spread=spread))


@pytest.mark.parametrize("value", ["\\u0000", "\\\\u0000", ["\\", "u0000"], {"\\u0000": "a\\\\u0000"}])
def test_the_letters_of_an_escape_are_not_a_nul(value: Any) -> None:
    """A backslash followed by the letters u0000 is ordinary text."""
    assert json.loads(encode_json(value, field="arguments")) == value


def test_nesting_up_to_the_limit_is_accepted() -> None:
    """Sixty-four levels are fine, and so are any number of brackets beside each other or inside text."""
    for value in (nested(MAX_DEPTH), [[]] * 1_000, "[{" * 1_000):
        assert json.loads(encode_json(value, field="arguments")) == value


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
def test_size_is_counted_in_bytes(letter: str) -> None:
    """Exactly 256 KiB of UTF-8 are accepted, one byte more is refused with the way out."""
    fits = (MAX_PAYLOAD_BYTES - 2) // len(letter.encode())
    encode_json(letter * fits, field="arguments")

    with pytest.raises(PayloadTooLargeError, match=r"arguments must be at most 256 KiB.*reference"):
        encode_json(letter * (fits + 1), field="arguments")


def test_an_error_does_not_quote_the_payload() -> None:
    """The message of a refusal stays short, whatever was sent."""
    for value in ("x" * 1_000_000, {"secret": object()}, "\ud800" * 1_000):
        with pytest.raises(InvalidInputError) as caught:
            encode_json(value, field="arguments")
        assert len(str(caught.value)) < 300


def test_other_types_go_through_the_given_default() -> None:
    """A `default` makes JSON of types JSON does not have."""
    assert encode_json([date(2026, 1, 2)], field="result", default=str) == '["2026-01-02"]'


@given(st.lists(texts, max_size=4), st.lists(texts, max_size=4))
def test_hashes_tell_parts_apart(one: list[str], other: list[str]) -> None:
    """Two lists of texts have the same hash exactly when they are the same list."""
    assert (hash_text(*one) == hash_text(*other)) == (one == other)


def test_a_hash_stays_the_same() -> None:
    """Hashes are stored: they must not change between versions."""
    assert hash_text("task", '{"a":1}') == "8240896b8c3f9278824816e5e58ba66732d0087cd3997bc3c1432a5ac5778a8f"


@pytest.mark.parametrize(
    "value",
    [
        {1: "a", "1": "b"},
        [{"deep": ({True: 1, "true": 2},)}],
        {"in": {None: 1, "null": 2}},
        {1.5: 1, "1.5": 2},
        {2: 0, "x": {3: 1, "3": 2}},
    ],
)
def test_keys_that_json_makes_one_are_refused(value: Any) -> None:
    """Of two keys that are the same text in JSON one value would be lost, so both are refused."""
    with pytest.raises(
        InvalidInputError, match='arguments must not have keys that are the same in JSON, such as 1 and "1"'
    ):
        encode_json(value, field="arguments")


def test_keys_that_stay_apart_are_accepted() -> None:
    """Numbers as keys become texts, as JSON has it; the same key in two mappings is no clash."""
    value = {1: {"1": "a"}, "2": [{1: "b"}, {"1": 'looks like "1":'}], 3.5: None}
    assert json.loads(encode_json(value, field="arguments")) == {
        "1": {"1": "a"}, "2": [{"1": "b"}, {"1": 'looks like "1":'}], "3.5": None,
    }  # fmt: skip


@given(values | st.text() | st.integers() | st.floats())
def test_the_short_way_writes_what_the_long_way_writes(value: Any) -> None:
    """What is encoded as a scalar is the same text; what JSON refuses is never taken for one."""
    text = encode_scalar(value)
    assert text is None or text == encode_json(value, field="arguments")
