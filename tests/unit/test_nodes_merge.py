"""merge in all versions and modes: which items come out, in what order, and where they are from."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.nodes.base import NodeError
from headrace.nodes.merge import TYPE
from tests.unit.merge_calls import CITIES, PEOPLE, by, clash, merged, pairs
from tests.unit.node_calls import jsons, rules


@pytest.mark.parametrize(
    ("version", "parameters", "count"),
    [(1, {}, 2), (2, {"mode": "append"}, 2), (3, {}, 2), (3.2, {"numberInputs": 3}, 3), (3, {"numberInputs": "4"}, 4)],
)
async def test_append_gives_one_input_after_another(version: float, parameters: dict[str, Any], count: int) -> None:
    """Items are as they were, files among them, and know their input."""
    assert TYPE.ports(parameters, version).inputs == count
    inputs = [[{"json": {"n": at}, "binary": {"f": {"id": "b"}}, "pairedItem": {"item": 7}}] for at in range(count)]
    out = await merged(parameters, *inputs, version=version)
    assert [(item["json"], item["binary"]) for item in out] == [({"n": at}, {"f": {"id": "b"}}) for at in range(count)]
    assert pairs(out) == [[(at, 0)] for at in range(count)]
    assert out[0]["pairedItem"] == {"item": 0}


async def test_an_input_that_nothing_leads_to_has_no_items() -> None:
    """The others are merged all the same."""
    assert jsons(await merged({"numberInputs": 3}, PEOPLE[:1], [], CITIES[:1])) == [PEOPLE[0], CITIES[0]]
    assert jsons(await merged({}, PEOPLE[:1])) == PEOPLE[:1]


LEFT = [{"a": 1, "in": {"x": 1, "l": [1, 2]}, "e": "left"}, {"a": 2}]
RIGHT = [{"b": 3, "a": 9, "in": {"y": 2, "l": [7]}, "e": ""}]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [{"a": 9, "in": {"x": 1, "l": [7, 2], "y": 2}, "e": "", "b": 3}]),
        (clash("preferLast"), [{"a": 9, "in": {"x": 1, "l": [7, 2], "y": 2}, "e": "", "b": 3}]),
        (clash("preferInput1"), [{"a": 1, "in": {"x": 1, "l": [1, 2], "y": 2}, "e": "left", "b": 3}]),
        (clash("preferInput2", mergeMode="shallowMerge"), [{"a": 9, "in": {"y": 2, "l": [7]}, "e": "", "b": 3}]),
        (clash("preferInput2", overrideEmpty=True),
         [{"a": 9, "in": {"x": 1, "l": [7, 2], "y": 2}, "e": "left", "b": 3}]),
        (clash("addSuffix"), [{"a_1": 1, "in_1": LEFT[0]["in"], "e_1": "left", "b_2": 3, "a_2": 9,
                               "in_2": RIGHT[0]["in"], "e_2": ""}]),
    ],
)  # fmt: skip
async def test_items_side_by_side(options: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    """What clashes is decided by the options; there are as many items as the shortest input has."""
    for version, parameters in (
        (3.2, by("Position")),
        (2.1, {"mode": "combine", "combinationMode": "mergeByPosition"}),
    ):
        word = options.get("clashHandling", {}).get("values", {}).get("resolveClash")
        if version < 3 and word == "preferLast":
            continue
        out = await merged({**parameters, "options": options}, LEFT, RIGHT, version=version)
        assert jsons(out) == expected
        assert pairs(out) == [[(0, 0), (1, 0)]]


async def test_unpaired_items_go_along_where_they_are_asked_for() -> None:
    """There are as many items as the longest input has then."""
    options = {"includeUnpaired": True}
    out = await merged(by("Position", numberInputs=3, options=options), LEFT, [], RIGHT)
    assert jsons(out) == [{"a": 9, "in": {"x": 1, "l": [7, 2], "y": 2}, "e": "", "b": 3}, {"a": 2}]
    assert pairs(out) == [[(0, 0), (2, 0)], [(0, 1)]]
    assert await merged(by("Position", numberInputs=3), LEFT, [], RIGHT) == []
    assert jsons(await merged(by("Position", options=options), [], RIGHT)) == RIGHT


async def test_the_preferred_of_three_inputs() -> None:
    """Any of them can be it."""
    inputs = [[{"v": 1, "a": 1}], [{"v": 2, "b": 2}], [{"v": 3, "c": 3}]]
    for number in (1, 2, 3):
        out = await merged(by("Position", numberInputs=3, options=clash(f"preferInput{number}")), *inputs)
        assert jsons(out) == [{"v": number, "a": 1, "b": 2, "c": 3}]
        assert pairs(out) == [[(0, 0), (1, 0), (2, 0)]]


async def test_files_of_items_that_become_one() -> None:
    """All are kept; of those with one name that of the later input."""
    left = [{"json": {}, "binary": {"a": {"id": "1"}, "same": {"id": "2"}}}]
    right = [{"json": {}, "binary": {"b": {"id": "3"}, "same": {"id": "4"}}}]
    (item,) = await merged(by("Position"), left, right)
    assert item["binary"] == {"a": {"id": "1"}, "same": {"id": "4"}, "b": {"id": "3"}}
    (bare,) = await merged(by("Position"), [{}], [{}])
    assert "binary" not in bare


@pytest.mark.parametrize(
    ("word", "letters", "origins"),
    [
        ("", ["ax", "ay", "bx", "by"], [(0, 0), (0, 1), (1, 0), (1, 1)]),
        ("preferInput1", ["ax", "bx", "ay", "by"], [(0, 0), (1, 0), (0, 1), (1, 1)]),
    ],
)
async def test_all_combinations(word: str, letters: list[str], origins: list[tuple[int, int]]) -> None:
    """Each item of the first input with each of the second; the other way round if the first is preferred."""
    left, right = [{"l": "a", "v": 1}, {"l": "b", "v": 1}], [{"r": "x", "v": 2}, {"r": "y", "v": 2}]
    for version, parameters in ((3, by("All")), (2, {"mode": "combine", "combinationMode": "multiplex"})):
        out = await merged({**parameters, "options": clash(word)}, left, right, version=version)
        assert [row["l"] + row["r"] for row in jsons(out)] == letters
        assert {row["v"] for row in jsons(out)} == {1 if word else 2}
        assert [dict(found) for found in pairs(out)] == [{0: one, 1: other} for one, other in origins]


async def test_too_many_combinations_are_refused() -> None:
    """They would fill the memory."""
    rows = [{"n": 1}] * 1_001
    for version, parameters in ((3, by("All")), (1, {"mode": "multiplex"})):
        with pytest.raises(NodeError, match=r"1001 × 1001 items are more than 1000000 combinations: filter"):
            await merged(parameters, rows, rows, version=version)


@pytest.mark.parametrize(
    ("version", "parameters", "expected"),
    [
        (3, {}, [PEOPLE[0]]),
        (3.2, {"useDataOfInput": "2"}, [CITIES[0]]),
        (3, {"numberInputs": 3, "useDataOfInput": 3}, [{"n": 1}]),
        (3, {"output": "empty"}, [{}]),
        (2, {}, [PEOPLE[0]]),
        (2, {"output": "input2"}, [CITIES[0]]),
        (2.1, {"output": "empty"}, [{}]),
    ],
)
async def test_one_branch_is_chosen(version: float, parameters: dict[str, Any], expected: Any) -> None:
    """The others are waited for alone; nothing comes out unless both of the first two have items."""
    inputs = [PEOPLE[:1], CITIES[:1], *([[{"n": 1}]] if "numberInputs" in parameters else [])]
    chosen = {"mode": "chooseBranch", **parameters}
    out = await merged(chosen, *inputs, version=version)
    assert jsons(out) == expected
    if parameters.get("output") == "empty":
        assert pairs(out) == [[(0, 0), (1, 0)]]
    assert await merged(chosen, PEOPLE, [], *inputs[2:], version=version) == []


async def test_a_branch_that_there_is_not_is_refused() -> None:
    """The error says how many there are."""
    with pytest.raises(InvalidInputError, match="useDataOfInput must be a whole number from 1 to 2"):
        await merged({"mode": "chooseBranch", "useDataOfInput": 3}, PEOPLE, CITIES)
    with pytest.raises(InvalidInputError, match="output must be one of specifiedInput, input1, input2, empty"):
        await merged({"mode": "chooseBranch", "output": "={{ 'both' }}"}, PEOPLE, CITIES)
    with pytest.raises(InvalidInputError, match="output must be one of input1, input2"):
        await merged({"mode": "passThrough", "output": "input3"}, PEOPLE, CITIES, version=1)


KEYS = {"propertyName1": "id", "propertyName2": "id"}


@pytest.mark.parametrize(
    ("parameters", "expected", "origins"),
    [
        ({"mode": "mergeByIndex", "join": "inner"}, [{"k": 2, "a": 1, "b": 1}], [[(0, 0), (1, 0)]]),
        ({"mode": "mergeByIndex"}, [{"k": 2, "a": 1, "b": 1}, {"a": 2}], [[(0, 0), (1, 0)], [(0, 1)]]),
        ({"mode": "multiplex"}, [{"k": 2, "a": 1, "b": 1}, {"k": 2, "a": 2, "b": 1}],
         [[(0, 0), (1, 0)], [(0, 1), (1, 0)]]),
        ({"mode": "passThrough"}, [{"k": {"x": 1}, "a": 1}, {"a": 2}], [[(0, 0)], [(0, 1)]]),
        ({"mode": "passThrough", "output": "input2"}, [{"k": 2, "b": 1}], [[(1, 0)]]),
        ({"mode": "wait"}, [{}], [[(0, 0), (0, 1)]]),
    ],
)  # fmt: skip
async def test_modes_of_the_first_version(parameters: dict[str, Any], expected: Any, origins: Any) -> None:
    """Fields of the second input come over those of the first, as a whole."""
    out = await merged(parameters, [{"k": {"x": 1}, "a": 1}, {"a": 2}], [{"k": 2, "b": 1}], version=1)
    assert jsons(out) == expected
    assert pairs(out) == origins


async def test_outer_join_of_the_first_version() -> None:
    """It has as many items as the longer input."""
    out = await merged({"mode": "mergeByIndex", "join": "outer"}, [{"a": 1}], [{"b": 1}, {"b": 2}], version=1)
    assert jsons(out) == [{"a": 1, "b": 1}, {"b": 2}]


LAST = {"id": 2, "name": "Bob", "city": "Bern"}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"mode": "keepKeyMatches"}, PEOPLE[1:2]),
        ({"mode": "removeKeyMatches"}, [PEOPLE[0], PEOPLE[2], {"x": 1}, {"id": True}]),
        ({"mode": "mergeByKey"}, [PEOPLE[0], LAST, PEOPLE[2]]),
    ],
)
async def test_keys_of_the_first_version(parameters: dict[str, Any], expected: Any) -> None:
    """The last item of the second input with a key counts; numbers and texts are the same as keys."""
    left = [*PEOPLE, {"x": 1}, {"id": True}]
    for right in (CITIES, [{**row, "id": str(row["id"])} for row in CITIES]):
        assert jsons(await merged({**KEYS, **parameters}, left, right, version=1)) == expected


@pytest.mark.parametrize(
    ("overwrite", "expected"),
    [
        ("always", {"id": 1, "a": 2, "b": 2, "c": 2}),
        ("blank", {"id": 1, "a": 1, "b": 2, "c": 2}),
        ("undefined", {"id": 1, "a": 1, "b": "", "c": 2}),
    ],
)
async def test_what_is_overwritten_in_the_first_version(overwrite: str, expected: dict[str, Any]) -> None:
    """All, what is blank, or what is missing."""
    parameters = {"mode": "mergeByKey", **KEYS, "overwrite": overwrite}
    left, right = [{"id": 1, "a": 1, "b": ""}], [{"id": 1, "a": 2, "b": 2, "c": 2}]
    assert jsons(await merged(parameters, left, right, version=1)) == [expected]


@pytest.mark.parametrize(
    ("version", "parameters", "rule"),
    [
        (3.2, {"mode": "combineBySql", "query": "SELECT 1"}, 'mode: "combineBySql" is not supported: use mode combine'),
        (3, {"mode": "zip"}, "mode: must be one of append, combine, chooseBranch"),
        (3, {"mode": "chooseBranch", "output": "both"}, "output: must be one of specifiedInput, input1, input2, empty"),
        (2, {"mode": "combine", "mergeByFields": {"values": ["a"]}}, "mergeByFields.values: must be pairs"),
        (3, {"numberInputs": 11}, "numberInputs: must be a whole number from 2 to 10"),
        (3, by("Name"), "combineBy: must be one of combineByFields"),
        (2, {"mode": "combine", "combinationMode": "combineAll"}, "combinationMode: must be one of mergeByFields"),
        (3, by("Fields"), "mergeByFields.values: must be pairs"),
        (3, by("Fields", fieldsToMatchString=" "), "fieldsToMatchString: must name the fields"),
        (2, {"mode": "combine", "mergeByFields": {"values": [{"field1": "a"}]}}, "mergeByFields.values: must be pairs"),
        (3, by("Fields", fieldsToMatchString="a", joinMode="outer"), "joinMode: must be one of keepMatches"),
        (3, by("Fields", fieldsToMatchString="a", outputDataFrom="x"), "outputDataFrom: must be one of both"),
        (
            3,
            by("Fields", fieldsToMatchString="a", options={"multipleMatches": "last"}),
            "options.multipleMatches: must",
        ),
        (3, by("Position", options=clash("preferInput3")), "options.clashHandling.values.resolveClash: must be one of"),
        (3, by("All", options=clash(mergeMode="no")), "options.clashHandling.values.mergeMode: must be one of"),
        (1, {"mode": "combine"}, "mode: must be one of append, mergeByIndex"),
        (1, {"mode": "mergeByIndex", "join": "cross"}, "join: must be one of inner"),
        (1, {"mode": "mergeByKey", **KEYS, "overwrite": "never"}, "overwrite: must be one of always"),
        (1, {"mode": "keepKeyMatches", "propertyName1": "id"}, "propertyName2: must name a field of the second input"),
    ],
)
def test_faults_of_merge(version: float, parameters: dict[str, Any], rule: str) -> None:
    """What cannot be done is found before anything runs."""
    (found,) = rules(TYPE, parameters, version)
    assert found.startswith(rule)


def test_ports_of_wrong_parameters_are_the_usual_ones() -> None:
    """A flow can be drawn before it is right."""
    for wrong in (1, 11, "two", None, True, "={{ 3 }}"):
        assert TYPE.ports({"numberInputs": wrong}, 3).inputs == 2
    assert TYPE.ports({"numberInputs": 5}, 2.1).inputs == 2
