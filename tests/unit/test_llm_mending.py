"""JSON read by code in spite of small mistakes, and never more than it says."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.llm.mending import mend
from headrace.llm.validation import InvalidAnswerError


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1,}', {"a": 1}),
        ('{"a": None, "b": "None", "c": True}', {"a": None, "b": "None", "c": True}),
        ('{"a": "x "y" z"}', {"a": 'x "y" z'}),
        ('{"a": 1 "b": 2}', {"a": 1, "b": 2}),
        ("{'a': 'its', b: [1, 2}", {"a": "its", "b": [1, 2]}),
        ('{"a": "one\ntwo",, "b": ""}', {"a": "one\ntwo", "b": ""}),
        ('{"a": "the \\"ice\\" \\u00e9",}', {"a": 'the "ice" é'}),
        ('[{"a": 1} {"a": 2}]', [{"a": 1}, {"a": 2}]),
    ],
)
def test_small_mistakes_are_read_as_they_are_meant(text: str, value: Any) -> None:
    """Commas, quotes and literals of other languages cost no call."""
    assert mend(text) == value


@pytest.mark.parametrize(
    "text",
    [
        '{"a": }',
        '{"a": "", "b": }',
        '{"a": tru}',
        '{"a": hello}',
        '{"a": "x", "b": "y}',
        '{"a": "x, "b": "y"}',
        '{"a": "he said: "b": 1", "b": 2,}',
        '{"a": "x" "y"}',
        '{"a": 5 kg}',
        '{"a": 1,000}',
        '{"a": 1 2}',
        '{"a": 1, "a": 2,}',
        '{"a": "x" // the rest as above\n}',
        "{'a': 'it's'}",
        '[{"a": 1}, {"a":',
        '{"a": 1',
        '{"a": "x"',
        '[{"a": 1}, {"a": 2}',
        "",
        "{",
        "word",
        "{]",
        "[" * 5_000 + "]" * 5_000,
    ],
)
def test_what_cannot_be_known_is_not_invented(text: str) -> None:
    """No empty text for what is missing, no half of a value, nothing where the text ends early, nothing left out."""
    with pytest.raises(InvalidAnswerError):
        mend(text)


_VALUES = st.dictionaries(
    st.text("abcdefgh_", min_size=1, max_size=6),
    st.integers(-999, 999)
    | st.booleans()
    | st.text("abc XYZ,.-'é\"\\\n", max_size=12)
    | st.lists(st.integers(0, 9), max_size=3),
    min_size=1,
    max_size=5,
)


@given(
    value=_VALUES, place=st.integers(0, 300), mark=st.sampled_from(["", '"', ",", "}", "{", "[", "]", ":", "x", "\\"])
)
def test_a_text_with_one_wrong_character_never_gives_an_invented_text(value: Any, place: int, mark: str) -> None:
    """Whatever is wrong with it: each text of the outcome stands in it, or it is refused."""
    text = json.dumps(value, ensure_ascii=False)
    at = place % len(text)
    broken = text[:at] + mark + text[at + (mark == "") :]
    try:
        mended = mend(broken)
    except InvalidAnswerError:
        return
    texts = [part for part in mended.values() if isinstance(part, str)]
    assert all(part in broken for part in texts if part.replace(" ", "").isalnum())
    assert texts.count("") <= broken.count('""')
