"""merge by fields: what matches, what does not, and what comes out."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.nodes.base import NodeError
from headrace.nodes.joining import alike
from tests.unit.merge_calls import CITIES, PEOPLE, by, clash, merged, pairs
from tests.unit.node_calls import jsons

TWO = [{"id": 2, "name": "Bob", "city": "Oslo"}, {"id": 2, "name": "Bob", "city": "Bern"}]


@pytest.mark.parametrize(
    ("more", "expected", "origins"),
    [
        ({}, TWO, [[(0, 1), (1, 0)], [(0, 1), (1, 2)]]),
        ({"options": {"multipleMatches": "first"}}, TWO[:1], [[(0, 1), (1, 0)]]),
        ({"outputDataFrom": "input1"}, PEOPLE[1:2], [[(0, 1)]]),
        ({"outputDataFrom": "input2"}, [CITIES[0], CITIES[2]], [[(1, 0)], [(1, 2)]]),
        ({"joinMode": "keepNonMatches", "outputDataFrom": "input1"}, [PEOPLE[0], PEOPLE[2]], [[(0, 0)], [(0, 2)]]),
        ({"joinMode": "keepNonMatches", "outputDataFrom": "input2"}, CITIES[1:2], [[(1, 1)]]),
        ({"joinMode": "keepNonMatches"},
         [{**PEOPLE[0], "_source": "input1"}, {**PEOPLE[2], "_source": "input1"}, {**CITIES[1], "_source": "input2"}],
         [[(0, 0)], [(0, 2)], [(1, 1)]]),
        ({"joinMode": "keepEverything"}, [*TWO, PEOPLE[0], PEOPLE[2], CITIES[1]],
         [[(0, 1), (1, 0)], [(0, 1), (1, 2)], [(0, 0)], [(0, 2)], [(1, 1)]]),
        ({"joinMode": "enrichInput1"}, [*TWO, PEOPLE[0], PEOPLE[2]],
         [[(0, 1), (1, 0)], [(0, 1), (1, 2)], [(0, 0)], [(0, 2)]]),
        ({"joinMode": "enrichInput2", "outputDataFrom": "input1"}, [*TWO, CITIES[1]],
         [[(1, 0), (0, 1)], [(1, 2), (0, 1)], [(1, 1)]]),
        ({"joinMode": "keepEverything", "options": clash("addSuffix")},
         [{"id_1": 2, "name_1": "Bob", "id_2": 2, "city_2": "Oslo"},
          {"id_1": 2, "name_1": "Bob", "id_2": 2, "city_2": "Bern"},
          {"id_1": 1, "name_1": "Ada"}, {"id_1": 3, "name_1": "Cy"}, {"id_2": 9, "city_2": "Rome"}],
         [[(0, 1), (1, 0)], [(0, 1), (1, 2)], [(0, 0)], [(0, 2)], [(1, 1)]]),
    ],
)  # fmt: skip
async def test_items_with_equal_fields(
    more: dict[str, Any], expected: list[dict[str, Any]], origins: list[list[tuple[int, int]]]
) -> None:
    """What matches is merged in the order of the first input; what else comes out is for `joinMode` to say."""
    named = {"mergeByFields": {"values": [{"field1": "id", "field2": "id"}]}}
    for version, parameters in (
        (3.2, by("Fields", fieldsToMatchString="id")),
        (3, by("Fields", advanced=True, **named)),
        (2.1, {"mode": "combine", "combinationMode": "mergeByFields", **named}),
        (2, {"mode": "combine", **named}),
    ):
        out = await merged({**parameters, **more}, PEOPLE, CITIES, version=version)
        assert jsons(out) == expected
        assert pairs(out) == origins


@pytest.mark.parametrize(
    ("mode", "options", "value"),
    [
        ("keepMatches", {}, "right"),
        ("enrichInput1", {}, "right"),
        ("enrichInput2", {}, "left"),
        ("enrichInput2", clash("preferLast"), "right"),
        ("keepMatches", clash("preferInput1"), "left"),
        ("keepEverything", clash("preferInput2"), "right"),
        ("keepMatches", clash(mergeMode="shallowMerge"), "right"),
    ],
)
async def test_which_value_of_a_match_stays(mode: str, options: dict[str, Any], value: str) -> None:
    """That of the second input unless told; input 2 is enriched with the first."""
    left, right = [{"k": "a", "v": "left"}], [{"k": "a", "v": "right"}]
    out = await merged(by("Fields", fieldsToMatchString="k", joinMode=mode, options=options), left, right)
    assert [row["v"] for row in jsons(out)] == [value]


@pytest.mark.parametrize(
    ("left", "right", "parameters", "count"),
    [
        ([{"a": {"b": 1}}], [{"c": [{"d": 1}]}], {"field1": "a.b", "field2": "c[0].d"}, 1),
        ([{"a": 1.0}], [{"a": 1}], {"field1": "a", "field2": "a"}, 1),
        ([{"a": 1}], [{"a": True}], {"field1": "a", "field2": "a"}, 0),
        ([{"a": 1}], [{"a": "1"}], {"field1": "a", "field2": "a"}, 0),
        ([{"a": {"x": [1], "y": 2}}], [{"a": {"y": 2, "x": [1]}}], {"field1": "a", "field2": "a"}, 1),
        ([{"a": None}], [{"a": None}], {"field1": "a", "field2": "a"}, 1),
        ([{"a": None}], [{}], {"field1": "a", "field2": "a"}, 0),
        ([{}], [{}], {"field1": "a", "field2": "a"}, 0),
        ([{"a": "missing"}], [{}], {"field1": "a", "field2": "a"}, 0),
    ],
)
async def test_what_counts_as_equal(left: Any, right: Any, parameters: dict[str, str], count: int) -> None:
    """Values have to be of one type; a field that is missing matches nothing."""
    found = by("Fields", advanced=True, mergeByFields={"values": [parameters]})
    assert len(await merged(found, left, right)) == count


async def test_all_of_several_fields_have_to_match() -> None:
    """Spaces around the names do not matter."""
    left = [{"a": 1, "b": 1}, {"a": 1, "b": 2}]
    right = [{"a": 1, "b": 2, "c": "yes"}, {"a": 2, "b": 2, "c": "no"}]
    out = await merged(by("Fields", fieldsToMatchString=" a , b"), left, right)
    assert jsons(out) == [{"a": 1, "b": 2, "c": "yes"}]


async def test_names_with_dots_where_they_are_plain() -> None:
    """`disableDotNotation` takes names as they are."""
    parameters = by("Fields", fieldsToMatchString="a.b", options={"disableDotNotation": True})
    assert len(await merged(parameters, [{"a.b": 1}], [{"a.b": 1}])) == 1
    assert len(await merged(parameters, [{"a": {"b": 1}}], [{"a": {"b": 1}}])) == 0


ALIKE = [
    (3, "3"), (3.0, "3"), (True, "TRUE"), (False, "0"), (True, 1), (None, ""), ("", []), (None, None), ([], None),
    ({"a": [1]}, '{"a": [1]}'), ([1], "[1]"), ("x", "x"), ({"a": 1.0}, {"a": 1}),
    ({"a": 1, "b": 2}, '{"b": 2, "a": 1}'), (1e-7, "1e-7"),
]  # fmt: skip
UNLIKE = [
    (3, "3.0"), (True, "yes"), (True, 2), ("true", 1), ("A", "a"), (0, None), (False, None), ({}, ""), ({}, []),
    ([1], "[2]"), ({"a": 1}, "{"), ("null", None), ([1], 1),
]  # fmt: skip


@pytest.mark.parametrize(
    ("one", "other", "expected"), [(*two, True) for two in ALIKE] + [(*two, False) for two in UNLIKE]
)
async def test_fuzzy_comparison(one: Any, other: Any, expected: bool) -> None:
    """Types may differ, whichever side has which; what is found by key is what is alike."""
    assert alike(one, other) is alike(other, one) is expected
    parameters = by("Fields", fieldsToMatchString="v", options={"fuzzyCompare": True})
    assert len(await merged(parameters, [{"v": one}], [{"v": other}])) == expected
    assert len(await merged(parameters, [{"v": other}], [{"v": one}])) == expected


async def test_a_field_that_is_missing_is_fuzzily_like_nothing_in_the_other() -> None:
    """It holds for the second input alone: items of the first need the field."""
    parameters = by("Fields", fieldsToMatchString="v", options={"fuzzyCompare": True})
    assert len(await merged(parameters, [{"v": None}], [{}])) == 1
    assert len(await merged(parameters, [{}], [{"v": None}])) == 0


@pytest.mark.parametrize(
    ("mode", "of", "left", "right", "expected"),
    [
        ("keepMatches", "both", PEOPLE, [], []),
        ("keepEverything", "both", PEOPLE, [], PEOPLE),
        ("keepEverything", "both", [], CITIES, CITIES),
        ("enrichInput1", "both", PEOPLE, [], PEOPLE),
        ("enrichInput1", "both", [], CITIES, []),
        ("enrichInput2", "both", PEOPLE, [], []),
        ("enrichInput2", "both", [], CITIES, CITIES),
        ("keepNonMatches", "both", PEOPLE, [], PEOPLE),
        ("keepNonMatches", "input1", PEOPLE, [], PEOPLE),
        ("keepNonMatches", "input2", PEOPLE, [], []),
        ("keepNonMatches", "input1", [], CITIES, []),
    ],
)
async def test_fields_of_an_input_without_items(mode: str, of: str, left: Any, right: Any, expected: Any) -> None:
    """What the other input has comes out as it is, where it is asked for at all."""
    parameters = by("Fields", fieldsToMatchString="id", joinMode=mode, outputDataFrom=of, options=clash("addSuffix"))
    assert jsons(await merged(parameters, left, right)) == expected


async def test_too_many_matches_are_refused_where_each_makes_an_item() -> None:
    """They would fill the memory; items of one input alone are no more than there were."""
    rows = [{"n": 1}] * 1_001
    for options in ({}, {"fuzzyCompare": True}):
        parameters = by("Fields", fieldsToMatchString="n", options=options)
        with pytest.raises(NodeError, match="more than 1000000 pairs of items match: match by more fields"):
            await merged(parameters, rows, rows)
        assert len(await merged({**parameters, "outputDataFrom": "input1"}, rows, rows)) == 1_001


async def test_fields_that_turn_out_to_be_none_are_refused() -> None:
    """Without a field, all items would match all others."""
    with pytest.raises(NodeError, match="fieldsToMatchString must name the fields"):
        await merged(by("Fields", fieldsToMatchString="={{ $json.by ?? '' }}"), PEOPLE, CITIES)
