"""Merge patches: RFC 7386, on the arguments of a call."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.errors import InvalidInputError, PayloadTooLargeError
from headrace.model.merge_patch import check_argument_patch, merge_patch, patch_arguments

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize(
    ("target", "patch", "result"),
    [
        ('{"a":"b"}', '{"a":"c"}', '{"a":"c"}'),
        ('{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'),
        ('{"a":"b"}', '{"a":null}', "{}"),
        ('{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'),
        ('{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'),
        ('{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'),
        ('{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'),
        ('{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'),
        ('["a","b"]', '["c","d"]', '["c","d"]'),
        ('{"a":"b"}', '["c"]', '["c"]'),
        ('{"a":"foo"}', "null", "null"),
        ('{"a":"foo"}', '"bar"', '"bar"'),
        ('{"e":null}', '{"a":1}', '{"e":null,"a":1}'),
        ("[1,2]", '{"a":"b","c":null}', '{"a":"b"}'),
        ("{}", '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'),
    ],
)
def test_a_patch_does_what_its_standard_says(target: str, patch: str, result: str) -> None:
    """The cases of RFC 7386, appendix A."""
    assert merge_patch(json.loads(target), json.loads(patch)) == json.loads(result)


@given(_JSON, _JSON)
def test_a_patch_applied_twice_is_applied_once(target: Any, patch: Any) -> None:
    """A second application changes nothing, and neither changes what it was given."""
    before = json.dumps([target, patch])
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert json.dumps([target, patch]) == before


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        (None, "patch"), (7, "patch"), ([], "patch"), ({}, "patch"), ({"model": "x"}, "patch"),
        ({"args": None}, "patch.args"), ({"args": {"0": 1}}, "patch.args"), ({"kwargs": None}, "patch.kwargs"),
        ({"kwargs": [1]}, "patch.kwargs"),
    ],
)  # fmt: skip
def test_a_patch_of_arguments_has_their_form(patch: Any, field: str) -> None:
    """What would not leave a list and an object is refused, naming the part."""
    with pytest.raises(InvalidInputError) as refused:
        check_argument_patch(patch)
    assert refused.value.field == field


def test_arguments_are_checked_as_at_enqueue() -> None:
    """Arguments that a patch made too large are refused."""
    patch = check_argument_patch({"kwargs": {"text": "x" * 300_000}})
    with pytest.raises(PayloadTooLargeError):
        patch_arguments({"args": [], "kwargs": {}}, patch)
