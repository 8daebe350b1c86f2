"""The scanner of a streamed list: the same elements however the text is cut, whatever is broken in it."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.llm.element_scanner import Element, ElementScanner
from tests.effort import bounded_work

_SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20)
)
_VALUES = st.recursive(
    _SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4)
)
#: Each holds an example or a draft, which is no answer.
_DRAFTS = (
    '<think>Perhaps [{"a": 9}]? No</think>',
    '\n<THINKING>{"items": [{"a": 9}]} </thinking>\n<think>\n</think>\n',
    'Or rather [{"a": 9}], see [1]? No.</think>\n',
    'Not [{"a": 9}] nor {"a": [9], "b": {}}, but this: ',
)
_PREFACES = st.sampled_from(["", "Sure, here they are:\n", "```json\n", "See [1] and {x} for [more]:\n```\n", *_DRAFTS])
_BROKEN = st.lists(
    st.sampled_from(['{"a": 1}', '{"a": "x', '"', "{", "}", "[", "]", ",", ":", "\\", "x", " ", "\n", '"b"', "null"]),
    max_size=30,
).map("".join)


def elements_of(text: str, key: str = "items") -> tuple[list[Element], bool]:
    """The elements of the list in a whole text, and whether a list was found at all."""
    scanner = ElementScanner(key)
    return [*scanner.feed(text), *scanner.finish()], scanner.is_found


def chunked(text: str, sizes: Sequence[int]) -> tuple[list[Element], ElementScanner]:
    """What a scanner gives for this text in chunks of these sizes, repeated."""
    scanner, found, begin, turn = ElementScanner(), [], 0, 0
    while begin < len(text):
        size = sizes[turn % len(sizes)]
        found += scanner.feed(text[begin : begin + size])
        begin, turn = begin + size, turn + 1
    found += scanner.finish()
    return found, scanner


@given(
    values=st.lists(_VALUES, max_size=8),
    sizes=st.lists(st.integers(1, 12), min_size=1, max_size=6),
    indent=st.sampled_from([None, 0, 2]),
    is_ascii=st.booleans(),
    is_wrapped=st.booleans(),
)
def test_a_valid_list_is_split_as_a_parser_splits_it(
    values: list[object], sizes: list[int], indent: int | None, is_ascii: bool, is_wrapped: bool
) -> None:
    """Strings, escapes and nesting of any kind, alone or under its key, in any chunks."""
    text = json.dumps({"n": ["x"], "items": values} if is_wrapped else values, indent=indent, ensure_ascii=is_ascii)
    found, scanner = chunked(text, sizes)

    assert [json.loads(element.text) for element in found] == values
    assert [element.index for element in found] == list(range(len(values)))
    assert all(element.is_closed for element in found)
    assert scanner.is_list_closed


@given(preface=_PREFACES, text=_BROKEN, sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_the_chunks_make_no_difference_even_in_broken_text(preface: str, text: str, sizes: list[int]) -> None:
    """What is guessed about a broken text is the same for the whole text and for its parts."""
    whole = preface + '{"items": [{"a": 0}, ' + text
    found, scanner = chunked(whole, sizes)

    assert (found, scanner.is_found) == elements_of(whole)
    assert found[0] == Element(0, '{"a": 0}', is_closed=True)


def test_one_wrong_character_seldom_costs_more_than_its_element_and_a_neighbour() -> None:
    """Of all texts with one character too many, too few or wrong, 99 % give the elements before and far behind."""
    elements = [json.dumps({"name": f"Oak {number}", "tags": ["a", "b"], "size": number}) for number in range(7)]
    hit, total, lost = elements[3], 0, []
    for at, mark, removes in itertools.product(range(1, len(hit)), ["", *'"{}[],:x\\\n', ",,"], [False, True]):
        broken = hit[:at] + mark + hit[at + removes :]
        texts = [element.text for element in elements_of(f"[{', '.join([*elements[:3], broken, *elements[4:]])}]")[0]]
        assert texts[:3] == elements[:3]
        total += 1
        if texts[-2:] != elements[-2:]:
            lost.append(broken)

    assert total > 1_000
    assert len(lost) <= 0.01 * total, lost


@pytest.mark.parametrize(
    ("text", "closed", "unclosed"),
    [
        ('[{"a": 1}, {"a": 2', ['{"a": 1}'], ['{"a": 2']),
        ('[{"a": 1, {"a": 2}]', ['{"a": 2}'], ['{"a": 1']),
        ('[{"a": "x}, {"a": "y"}]', ['{"a": "y"}'], ['{"a": "x}']),
        ('[{"a": "x\\"}, {"a": "y"}]', ['{"a": "y"}'], ['{"a": "x\\"}']),
        ('[{"a":1}, "a": 2, "b": 3}, {"a":3}]', ['{"a":1}', '{"a":3}'], ['"a": 2, "b": 3}']),
        ('[{"a": [1, 2}, {"a": 2}]', ['{"a": [1, 2}', '{"a": 2}'], []),
        ('[{"a": 1], "b": 2}, {"a": 2}]', ['{"a": 1], "b": 2}', '{"a": 2}'], []),
        ('[{"a": "he "said" so"}, {"a": 2}]', ['{"a": "he "said" so"}', '{"a": 2}'], []),
        ('[{"a":1}} {"a":2}]', ['{"a":1}', '{"a":2}'], []),
        ('{"result": {"places": [{"a": 1}]}}', ['{"a": 1}'], []),
        ('{"a": 1}', [], []),
        ("no list", [], []),
        ("[1, nul", ["1"], ["nul"]),
    ],
)
def test_broken_elements_are_told_from_closed_ones(text: str, closed: list[str], unclosed: list[str]) -> None:
    """An end that was seen is told from one that was guessed or never came."""
    found, _ = elements_of(text)

    assert [element.text for element in found if element.is_closed] == closed
    assert [element.text for element in found if not element.is_closed] == unclosed


@pytest.mark.parametrize(
    "before",
    ["", "Sure! ", "Sources [1], [b]; a {format}:\n", "```json\n", '{"example": {"a": 9}} then: ', "Here:\n```\n"],
)
def test_words_and_fences_before_the_list_are_passed_over(before: str) -> None:
    """Brackets of prose are no list, and an object without a list is not the one."""
    found, is_found = elements_of(before + '[{"a": 1}, {"a": 2}]\n``` That is [{all}].')

    assert is_found
    assert [element.text for element in found] == ['{"a": 1}', '{"a": 2}']


@pytest.mark.parametrize("before", _DRAFTS)
@pytest.mark.parametrize("size", [1, 4, 1_000])
def test_a_draft_is_no_answer(before: str, size: int) -> None:
    """What a model tries out before its answer is passed over, and the answer's items come out at once all the same."""
    text = before + '{"items": [{"a": 1}, {"a": 2}'
    scanner, found = ElementScanner(), []
    for begin in range(0, len(text), size):
        found += [element.text for element in scanner.feed(text[begin : begin + size])]

    assert found == ['{"a": 1}', '{"a": 2}']


@pytest.mark.parametrize(
    "before", ["<think>[1] or [2]</think>\n", "[1] or\n[2]? </think>", "<think>x</think>```json\n"]
)
def test_a_list_where_the_answer_begins_comes_out_at_once(before: str) -> None:
    """A bare list behind the reasoning is as good as one at the start."""
    before = before if before.startswith("<") else f"See {before}"

    assert [element.text for element in ElementScanner().feed(before + '[{"a": 1}, ')] == ['{"a": 1}']


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<think>Perhaps {"items": [{"a": 9}]}', []),
        ('<think>Perhaps {"items": [{"a": 9}]}</think> I cannot tell.', []),
        ('Perhaps [{"a": 9}] or {"b": [9]} </think> I cannot tell.', []),
        ('Perhaps [{"a": 9}]? No: [{"a": 1}], as {told} in [{all}].', ['{"a": 1}']),
        ('Perhaps [{"a": 9}]? No: [{"a": 1}, {"a"', ['{"a": 1}', '{"a"']),
        ('Perhaps [{x, and so on. {"items": [{"a": 1}]}', ['{"a": 1}']),
        ('{"items": [{"a": "</think>"}]}', ['{"a": "</think>"}']),
        ('<thinner>[{"a": 1}]', ['{"a": 1}']),
    ],
)
def test_within_words_the_last_list_counts_at_the_end(text: str, found: list[str]) -> None:
    """Reasoning that never ends holds none; of several bare lists the last one that looks like JSON is the answer."""
    assert [element.text for element in elements_of(text)[0]] == found
    assert [element.text for element in chunked(text, [3])[0]] == found


def test_long_reasoning_costs_time_in_proportion() -> None:
    """500 kB of it, with tags or without, with a bracket in every chunk, is not read once for each chunk."""
    for before in ("<think>", "Well, "):
        with bounded_work(5):
            found, _ = chunked(before + "see [1] or {2}; " * 30_000 + '</think>{"items": [{"a": 1}]}', [16])

        assert [element.text for element in found] == ['{"a": 1}']


def test_of_several_lists_the_one_under_the_key_counts() -> None:
    """A list under another key comes first; text that looks like the key stands in a string."""
    text = '{"notes": ["[{", "\\"items\\": ["], "deep": {"items": [{"a": 1}]}}'

    assert [element.text for element in elements_of(text)[0]] == ['{"a": 1}']
    assert elements_of('{"x": [{"a": 1}], "y": [{"a": 2}]}') == ([], False)
    assert [element.text for element in elements_of('{"x": [1], "y": [{"a": 2}]}', "y")[0]] == ['{"a": 2}']


def test_an_element_comes_with_the_chunk_that_closes_it() -> None:
    """No later: the consumer works on it while the others are written."""
    scanner = ElementScanner()

    assert list(scanner.feed('{"items": [{"a": {"b": 1}')) == []
    assert [element.text for element in scanner.feed("}")] == ['{"a": {"b": 1}}']
    assert not scanner.is_list_closed
    assert [*scanner.feed("]}"), *scanner.finish()] == []
    assert scanner.is_list_closed


def test_a_long_streamed_answer_costs_little() -> None:
    """50 items of 13 kB in 3,400 chunks take about 5 ms of processor time, and the first comes within 3 % of them.

    Machines differ: what is measured with is a count of the letters of the text.
    """
    items = [
        {"name": f"Frost Keep {n}", "style": "cold", "text": 'of "ice" ' + "x" * 190, "size": n} for n in range(50)
    ]
    text = json.dumps({"items": items})
    chunks = [text[begin : begin + 4] for begin in range(0, len(text), 4)]
    costs, letters, first = [], [], len(chunks)
    for _ in range(5):
        begin, counts = time.process_time(), dict[str, int]()
        for letter in text:
            counts[letter] = counts.get(letter, 0) + 1
        letters.append(time.process_time() - begin)
        scanner, found = ElementScanner(), 0
        begin = time.process_time()
        for number, chunk in enumerate(chunks):
            found += len(scanner.feed(chunk))
            first = min(first, number) if found else first
        costs.append(time.process_time() - begin)
        assert found == 50

    assert first <= 0.03 * len(chunks)
    assert min(costs) <= 5 * min(letters)


def test_a_long_element_costs_time_in_proportion() -> None:
    """An element of 2 MB with a bracket in every chunk is read once, not once for each chunk."""
    text = '[{"a": [' + ", ".join(['{"b": "}"}'] * 200_000) + "]}]"
    with bounded_work(10):
        found, _ = chunked(text, [16])

    assert len(found) == 1
