"""if, filter and switch: which items go where, in all versions of their parameters."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.nodes import filter as filter_
from headrace.nodes import if_, switch
from headrace.nodes.base import NodeError
from tests.unit.node_calls import jsons, make_call, rules, run_type

ROWS = [{"n": 1, "city": "Bern"}, {"n": 5, "city": "Oslo"}, {"n": 9, "city": "Rome"}]
OPTIONS = {"caseSensitive": True, "typeValidation": "strict", "version": 2}


def when(left: Any, operation: str, right: Any = None, kind: str = "number") -> dict[str, Any]:
    """Return conditions with one in them."""
    one = {"leftValue": left, "rightValue": right, "operator": {"type": kind, "operation": operation}}
    return {"options": OPTIONS, "conditions": [one], "combinator": "and"}


def numbers(items: list[dict[str, Any]]) -> list[Any]:
    """Return the field n of each item."""
    return [row["n"] for row in jsons(items)]


LARGE = when("={{ $json.n }}", "gt", 4)
FIRST_LARGE = {"number": [{"value1": "={{ $json.n }}", "operation": "larger", "value2": 4}]}


@pytest.mark.parametrize(("version", "parameters"), [(1, FIRST_LARGE), (2, LARGE), (2.2, LARGE), (2.3, LARGE)])
async def test_if_sends_items_two_ways(version: float, parameters: dict[str, Any]) -> None:
    """Items keep their order; each is paired with itself."""
    yes, no = await run_type(if_.TYPE, {"conditions": parameters}, ROWS, version=version)
    assert (numbers(yes), numbers(no)) == ([5, 9], [1])
    assert [item["pairedItem"] for item in yes + no] == [{"item": 1}, {"item": 2}, {"item": 0}]


async def test_items_go_on_whole() -> None:
    """Files stay with their item; what it was paired with before does not."""
    item = {"json": {"n": 7}, "binary": {"data": {"id": "b1"}}, "pairedItem": {"item": 40, "input": 1}}
    yes, no = await run_type(if_.TYPE, {"conditions": LARGE}, [item])
    assert yes == [{**item, "pairedItem": {"item": 0}}]
    assert no == []


@pytest.mark.parametrize(("word", "expected"), [("any", [1, 5]), ("all", []), (None, [])])
async def test_first_version_of_if_combines_all_or_any(word: str | None, expected: list[int]) -> None:
    """`combineOperation` says it; all is meant where nothing is written."""
    texts = [{"value1": "={{ $json.city }}", "value2": name} for name in ("Bern", "Oslo")]
    parameters = {"conditions": {"string": texts}} | ({"combineOperation": word} if word else {})
    yes, _ = await run_type(if_.TYPE, parameters, ROWS, version=1)
    assert numbers(yes) == expected


@pytest.mark.parametrize(("word", "expected"), [("OR", [1, 5]), ("AND", []), (None, [])])
async def test_first_version_of_filter_combines_and_or(word: str | None, expected: list[int]) -> None:
    """`combineConditions` says it; AND is meant where nothing is written."""
    texts = [{"value1": "={{ $json.city }}", "value2": name} for name in ("Bern", "Oslo")]
    parameters = {"conditions": {"string": texts}} | ({"combineConditions": word} if word else {})
    (kept,) = await run_type(filter_.TYPE, parameters, ROWS, version=1)
    assert numbers(kept) == expected


@pytest.mark.parametrize("version", [2, 2.1, 2.2])
async def test_filter_keeps_what_fits(version: float) -> None:
    """The other items are gone."""
    (kept,) = await run_type(filter_.TYPE, {"conditions": LARGE}, ROWS, version=version)
    assert numbers(kept) == [5, 9]
    assert [item["pairedItem"] for item in kept] == [{"item": 1}, {"item": 2}]


async def test_an_empty_text_is_no_number_from_version_2_3_on() -> None:
    """Conditions without an edition of their own have that of the node."""
    parameters = {"looseTypeValidation": True, "conditions": {"conditions": when("", "equals", 0)["conditions"]}}
    for version, count in ((2.2, 1), (2.3, 0)):
        (kept,) = await run_type(filter_.TYPE, parameters, [{}], version=version)
        assert len(kept) == count, version


@pytest.mark.parametrize("kind", [if_.TYPE, filter_.TYPE])
async def test_an_item_that_cannot_be_compared_fails_alone(kind: Any) -> None:
    """It is kept among the failed ones where others may go on, and ends the call where not."""
    rows = [{"n": 9}, {"n": "nine"}, {"n": 8}]
    call = make_call(kind, {"conditions": LARGE}, rows, strict=False)
    passed = kind.run(call)[0]
    assert [item["pairedItem"] for item in passed] == [{"item": 0}, {"item": 2}]
    assert [item["pairedItem"] for item, _ in call.failed] == [{"item": 1}]
    assert "compared as number" in str(call.failed[0][1])
    with pytest.raises(InvalidInputError, match="leftValue"):
        await run_type(kind, {"conditions": LARGE}, rows)


@pytest.mark.parametrize(
    ("kind", "parameters", "version", "parameter"),
    [
        (if_.TYPE, {"conditions": when("a", "regex", "a+", "string")}, 2, "conditions.conditions[0].operator"),
        (if_.TYPE, {}, 2, "conditions"),
        (if_.TYPE, {"conditions": {}, "combineOperation": "none"}, 1, "combineOperation"),
        (filter_.TYPE, {"conditions": {}, "combineConditions": "all"}, 1, "combineConditions"),
        (filter_.TYPE, {"conditions": {"string": [{"operation": "regex"}]}}, 1, "conditions.string[0].operation"),
    ],
)
def test_faults_of_if_and_filter(kind: Any, parameters: dict[str, Any], version: float, parameter: str) -> None:
    """What cannot be done is found before anything runs."""
    (rule,) = rules(kind, parameters, version)
    assert rule.startswith(f"{parameter}: ")


@pytest.mark.parametrize(("kind", "version"), [(if_.TYPE, 1), (if_.TYPE, 2.2), (filter_.TYPE, 1), (filter_.TYPE, 2)])
def test_conditions_that_run_have_no_faults(kind: Any, version: float) -> None:
    """Expressions are no fault."""
    assert rules(kind, {"conditions": FIRST_LARGE if version < 2 else LARGE}, version) == []


def by_value(*pairs: tuple[str, Any], **more: Any) -> dict[str, Any]:
    """Return parameters of switch, version 2: operation and value of each rule, and others."""
    found = [{"operation": operation, "value2": value} for operation, value in pairs]
    return {"value1": "={{ $json.n }}", "rules": {"rules": found}, **more}


def by_rules(*conditions: dict[str, Any], **options: Any) -> dict[str, Any]:
    """Return parameters of switch, version 3: the conditions of each rule, and options."""
    return {"rules": {"values": [{"conditions": one} for one in conditions]}, "options": options}


SMALL, MIDDLE, POSITIVE = (when("={{ $json.n }}", *rest) for rest in (("lt", 3), ("lt", 7), ("gt", 0)))


@pytest.mark.parametrize(
    ("version", "parameters", "expected"),
    [
        (2, by_value(("smaller", 3), ("smaller", 7)), [[1], [5]]),
        (2, by_value(("smaller", 3), ("smaller", 7), fallbackOutput=0), [[1, 9], [5]]),
        (2, by_value(("smaller", 3), ("smaller", 7), fallbackOutput=-1), [[1], [5]]),
        (2, by_value(("equal", "Oslo"), dataType="string") | {"value1": "={{ $json.city }}"}, [[5]]),
        (3, by_rules(SMALL, MIDDLE), [[1], [5]]),
        (3.2, by_rules(SMALL, MIDDLE, allMatchingOutputs=True), [[1], [1, 5]]),
        (3, by_rules(SMALL, POSITIVE, MIDDLE, allMatchingOutputs=True), [[1], [1, 5, 9], [1, 5]]),
        (3, by_rules(SMALL, MIDDLE, fallbackOutput="none"), [[1], [5]]),
        (3, by_rules(SMALL, MIDDLE, fallbackOutput="extra"), [[1], [5], [9]]),
        (3, by_rules(SMALL, MIDDLE, fallbackOutput=1), [[1], [5, 9]]),
        (3, by_rules(SMALL, MIDDLE, fallbackOutput="0", allMatchingOutputs=True), [[1, 9], [1, 5]]),
        (2, {"mode": "expression", "outputsAmount": 3, "output": "={{ $itemIndex }}"}, [[1], [5], [9]]),
        (3, {"mode": "expression", "numberOutputs": "2", "output": "={{ $json.n > 4 ? 1 : 0 }}"}, [[1], [5, 9]]),
        (3, {"mode": "expression", "output": "={{ 3 }}"}, [[], [], [], [1, 5, 9]]),
        (1, {"mode": "expression", "output": "2"}, [[], [], [1, 5, 9], []]),
    ],
)
async def test_switch_sends_items_to_the_port_they_fit(
    version: float, parameters: dict[str, Any], expected: list[list[int]]
) -> None:
    """The first rule that fits decides, unless all are asked for; others go where the fallback says, or nowhere."""
    assert rules(switch.TYPE, parameters, version) == []
    out = await run_type(switch.TYPE, parameters, ROWS, version=version)
    assert [numbers(items) for items in out] == expected
    assert all(item["pairedItem"] == {"item": [1, 5, 9].index(item["json"]["n"])} for items in out for item in items)


async def test_rules_of_the_first_version_name_their_port() -> None:
    """There are four ports, whatever the rules; the first is meant where none is named."""
    found = [{"value2": 3, "output": 2}, {"operation": "equal", "value2": 5, "output": 2}, {"value2": 100}]
    out = await run_type(switch.TYPE, {"value1": "={{ $json.n }}", "rules": {"rules": found}}, ROWS, version=1)
    assert [numbers(items) for items in out] == [[9], [], [1, 5], []]


@pytest.mark.parametrize(
    ("version", "parameters", "names"),
    [
        (1, {}, ("0", "1", "2", "3")),
        (2, {"mode": "expression"}, ("0", "1", "2", "3")),
        (2, {"mode": "expression", "outputsAmount": 2}, ("0", "1")),
        (2, {"rules": {"rules": [{"outputKey": "cold"}, {}]}}, ("cold", "1")),
        (3, {"mode": "expression", "numberOutputs": "={{ 3 }}"}, ("0", "1", "2", "3")),
        (3, by_rules(SMALL, MIDDLE), ("0", "1")),
        (3, by_rules(SMALL, fallbackOutput="extra"), ("0", "Fallback")),
        (3, by_rules(SMALL, fallbackOutput="extra", renameFallbackOutput="rest"), ("0", "rest")),
        (
            3,
            {"rules": {"values": [{"renameOutput": True, "outputKey": "warm"}, {"outputKey": "={{ 1 }}"}]}},
            ("warm", "1"),
        ),
        (3, {"rules": "={{ $json }}"}, ("main",)),
    ],
)
def test_ports_of_switch_follow_from_its_parameters(
    version: float, parameters: dict[str, Any], names: tuple[str, ...]
) -> None:
    """They have the names of their rules, or numbers; wrong parameters give the usual ones."""
    assert switch.TYPE.ports(parameters, version).outputs == names


@pytest.mark.parametrize(
    ("version", "parameters", "message"),
    [
        (
            3,
            {"mode": "expression", "output": "={{ 4 }}"},
            r"output must be from 0 to 3, as the node has 4 ports, got 4",
        ),
        (3, {"mode": "expression", "output": "={{ -1 }}"}, "output must be from 0 to 3"),
        (2, {"mode": "expression"}, "output must be from 0 to 3"),
        (2, by_value(("smaller", 3), fallbackOutput="={{ 1 }}"), r"fallbackOutput must be from 0 to 0"),
        (
            1,
            {"rules": {"rules": [{"value2": 100, "output": 4}]}, "value1": 1},
            r"rules\[0\]\.output must be from 0 to 3",
        ),
    ],
)
async def test_a_port_that_there_is_not_is_an_error(version: float, parameters: dict[str, Any], message: str) -> None:
    """No item is lost by a wrong number."""
    with pytest.raises(NodeError, match=message):
        await run_type(switch.TYPE, parameters, ROWS, version=version)


@pytest.mark.parametrize(
    ("version", "parameters", "parameter"),
    [
        (3, {"mode": "random"}, "mode"),
        (3, {}, "rules.values"),
        (3, {"rules": {"values": []}}, "rules.values"),
        (3, by_rules(*[SMALL] * 101), "rules.values"),
        (3, by_rules(when("a", "regex", "b", "string")), "rules.values[0].conditions.conditions[0].operator"),
        (3, {"rules": {"values": ["a"]}}, "rules.values[0].conditions"),
        (3, by_rules(SMALL, fallbackOutput=1), "options.fallbackOutput"),
        (3, {"mode": "expression", "numberOutputs": 0}, "numberOutputs"),
        (3, {"mode": "expression", "numberOutputs": "={{ 3 }}"}, "numberOutputs"),
        (2, by_value(("regex", "a"), dataType="string"), "rules.rules[0].operation"),
        (2, by_value(("smaller", 1), dataType="text"), "dataType"),
        (2, by_value(("smaller", 1), fallbackOutput=4), "fallbackOutput"),
        (1, {"rules": {"rules": []}}, "rules.rules"),
    ],
)
def test_faults_of_switch(version: float, parameters: dict[str, Any], parameter: str) -> None:
    """What cannot be done is found before anything runs."""
    (rule,) = rules(switch.TYPE, parameters, version)
    assert rule.startswith(f"{parameter}: ")
