"""Node types that take lists apart, put them together, sort, cut and thin them out."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.nodes import aggregate, limit, remove_duplicates, sort, split_out
from headrace.nodes.base import NodeError
from tests.unit.node_calls import jsons, make_call, rules, run_call, run_type

ORDER = {"id": 7, "lines": [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}], "tags": ["new", "big"], "to": {"city": "Ulm"}}
FILE = {"id": "blob-1", "fileName": "x.pdf", "mimeType": "application/pdf", "fileSize": 3}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"fieldToSplitOut": "lines"}, [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]),
        ({"fieldToSplitOut": "$json.lines"}, [{"sku": "a", "n": 1}, {"sku": "b", "n": 2}]),
        ({"fieldToSplitOut": "tags"}, [{"tags": "new"}, {"tags": "big"}]),
        ({"fieldToSplitOut": "tags", "options": {"destinationFieldName": "tag"}}, [{"tag": "new"}, {"tag": "big"}]),
        ({"fieldToSplitOut": "lines", "options": {"destinationFieldName": "line"}},
         [{"line": {"sku": "a", "n": 1}}, {"line": {"sku": "b", "n": 2}}]),
        ({"fieldToSplitOut": "to"}, [{"to": "Ulm"}]),
        ({"fieldToSplitOut": "to.city"}, [{"to.city": "Ulm"}]),
        ({"fieldToSplitOut": "id"}, [{"id": 7}]),
        ({"fieldToSplitOut": "missing"}, []),
        ({"fieldToSplitOut": "to.city", "options": {"disableDotNotation": True}}, []),
        ({"fieldToSplitOut": "tags, missing"}, [{"tags": "new"}, {"tags": "big"}]),
        ({"fieldToSplitOut": "lines, tags", "options": {"destinationFieldName": "line, tag"}},
         [{"line": {"sku": "a", "n": 1}, "tag": "new"}, {"line": {"sku": "b", "n": 2}, "tag": "big"}]),
        ({"fieldToSplitOut": "tags", "include": "selectedOtherFields", "fieldsToInclude": "id, none"},
         [{"id": 7, "tags": "new"}, {"id": 7, "tags": "big"}]),
        ({"fieldToSplitOut": "lines", "include": "allOtherFields"},
         [{"id": 7, "tags": ["new", "big"], "to": {"city": "Ulm"}, "lines": {"sku": "a", "n": 1}},
          {"id": 7, "tags": ["new", "big"], "to": {"city": "Ulm"}, "lines": {"sku": "b", "n": 2}}]),
    ],
)  # fmt: skip
async def test_split_out(parameters: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    """A list becomes items; objects are spread where one field is split and nothing else is included."""
    [out] = await run_type(split_out.TYPE, parameters, [ORDER])
    assert jsons(out) == expected


async def test_split_out_leaves_its_input_alone() -> None:
    """The lines of the input keep what they have, and each output item knows the item it came from."""
    rows = [{"n": [{"v": 1}]}, {"n": []}, {"n": [{"v": 2}, {"v": 3}]}]
    [out] = await run_type(split_out.TYPE, {"fieldToSplitOut": "n"}, rows)
    assert [item["pairedItem"] for item in out] == [{"item": 0}, {"item": 2}, {"item": 2}]
    out[0]["json"]["v"] = 99
    assert rows[0] == {"n": [{"v": 1}]}


async def test_split_out_files() -> None:
    """`$binary` gives each file an item of its own; data that look like nothing special stay data."""
    item = {"json": {"n": [{"$file": "a", "$data": "b"}]}, "binary": {"one": FILE, "two": FILE}}
    [files] = await run_type(split_out.TYPE, {"fieldToSplitOut": "$binary"}, [item])
    assert [list(one["binary"]) for one in files] == [["one"], ["two"]]
    [kept] = await run_type(split_out.TYPE, {"fieldToSplitOut": "n", "options": {"includeBinary": True}}, [item])
    assert kept[0]["json"] == {"$file": "a", "$data": "b"}
    assert kept[0]["binary"] == {"one": FILE, "two": FILE}


async def test_split_out_with_too_few_names() -> None:
    """Each field needs its name; in a call that is not strict the item fails by itself."""
    parameters = {"fieldToSplitOut": "lines, tags", "options": {"destinationFieldName": "={{ $json.name }}"}}
    rows = [{"name": "a", "lines": [1], "tags": [2]}, {"name": "a,b", "lines": [1], "tags": [2]}]
    with pytest.raises(NodeError, match="a name for each of the 2 fields"):
        await run_type(split_out.TYPE, parameters, rows)
    call = make_call(split_out.TYPE, parameters, rows, strict=False)
    assert jsons((await run_call(split_out.TYPE, call))[0]) == [{"a": 1, "b": 2}]
    assert [item["json"]["name"] for item, _ in call.failed] == ["a"]


SALES = [
    {"shop": "north", "sum": 5, "who": {"name": "Ada"}, "tags": ["x", None]},
    {"shop": "south", "sum": None, "who": {"name": "Bo"}, "tags": ["y"]},
    {"shop": "north", "sum": 7, "who": {"name": "Cy"}},
]


def lists(*names: str, **options: Any) -> dict[str, Any]:
    """Return parameters that list fields; "a>b" gives field a the name b."""
    rows = [
        {"fieldToAggregate": name, "renameField": bool(new), "outputFieldName": new}
        for name, _, new in (one.partition(">") for one in names)
    ]
    return {"fieldsToAggregate": {"fieldToAggregate": rows}, "options": options}


def whole(**others: Any) -> dict[str, Any]:
    """Return parameters that list whole items."""
    return {"aggregate": "aggregateAllItemData", **others}


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (lists("sum"), [{"sum": [5, 7]}]),
        (lists("sum", keepMissing=True), [{"sum": [5, None, 7]}]),
        (lists("who.name"), [{"name": ["Ada", "Bo", "Cy"]}]),
        (lists("who.name>people.names"), [{"people": {"names": ["Ada", "Bo", "Cy"]}}]),
        (lists("who.name>a.b", disableDotNotation=True), [{"a.b": []}]),
        (lists("tags"), [{"tags": [["x"], ["y"]]}]),
        (lists("tags", mergeLists=True), [{"tags": ["x", "y"]}]),
        (lists("tags", mergeLists=True, keepMissing=True), [{"tags": ["x", None, "y", None]}]),
        (lists("sum", groupByFields="shop"), [{"shop": "north", "sum": [5, 7]}, {"shop": "south", "sum": []}]),
        (lists("sum", groupByFields="who.name, shop"),
         [{"who": {"name": "Ada"}, "shop": "north", "sum": [5]}, {"who": {"name": "Bo"}, "shop": "south", "sum": []},
          {"who": {"name": "Cy"}, "shop": "north", "sum": [7]}]),
        (whole(), [{"data": SALES}]),
        (whole(destinationFieldName="rows", include="specifiedFields", fieldsToInclude="sum"),
         [{"rows": [{"sum": 5}, {"sum": None}, {"sum": 7}]}]),
        (whole(include="specifiedFields", fieldsToInclude="tags"),
         [{"data": [{"tags": ["x", None]}, {"tags": ["y"]}]}]),
        (whole(include="allFieldsExcept", fieldsToExclude="who, tags", options={"groupByFields": "shop"}),
         [{"shop": "north", "data": [{"shop": "north", "sum": 5}, {"shop": "north", "sum": 7}]},
          {"shop": "south", "data": [{"shop": "south", "sum": None}]}]),
    ],
)  # fmt: skip
async def test_aggregate(parameters: dict[str, Any], expected: list[dict[str, Any]]) -> None:
    """Fields become lists, whole items one list, and groups an item each."""
    [out] = await run_type(aggregate.TYPE, parameters, SALES)
    assert jsons(out) == expected


async def test_aggregate_knows_where_its_lists_come_from() -> None:
    """An item of a group is paired with all items of the group."""
    [out] = await run_type(aggregate.TYPE, lists("sum", groupByFields="shop"), SALES)
    assert [one["pairedItem"] for one in out] == [[{"item": 0}, {"item": 2}], [{"item": 1}]]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, None),
        ({"includeBinaries": True}, ["data", "data_1", "photo"]),
        ({"includeBinaries": True, "keepOnlyUnique": True}, ["data", "photo"]),
    ],
)
async def test_aggregate_files(options: dict[str, Any], expected: list[str] | None) -> None:
    """Files of equal names are numbered; of those that look alike only the first is kept if that is wanted."""
    photo = {**FILE, "mimeType": "image/png"}
    items = [{"json": {"n": 1}, "binary": {"data": FILE}}, {"json": {"n": 2}, "binary": {"data": FILE, "photo": photo}}]
    [[one]] = await run_type(aggregate.TYPE, lists("n", **options), items)
    assert (list(one["binary"]) if "binary" in one else None) == expected


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (lists("sum", "shop>sum"), "'sum' is made twice"),
        (lists("sum>shop", groupByFields="shop"), "'shop' is made twice"),
        (lists("sum", groupByFields="who"), "'who' of item 0 is dict"),
    ],
)
async def test_aggregate_refuses(parameters: dict[str, Any], message: str) -> None:
    """A field is made once, and groups are told apart by plain values."""
    with pytest.raises(NodeError, match=message):
        await run_type(aggregate.TYPE, parameters, SALES)


def by(*rows: tuple[str, str], **options: Any) -> dict[str, Any]:
    """Return parameters that sort by fields."""
    fields = [{"fieldName": name, "order": order} for name, order in rows]
    return {"sortFieldsUi": {"sortField": fields}, "options": options}


PEOPLE = [{"n": 3, "a": "b"}, {"n": 1, "a": "B"}, {"a": "a"}, {"n": 20, "a": "c"}, {"n": None, "a": "x"}]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        (by(("n", "ascending")), [4, 1, 0, 3, 2]),
        (by(("n", "descending")), [3, 0, 1, 4, 2]),
        (by(("a", "ascending"), ("n", "ascending")), [2, 1, 0, 3, 4]),
        (by(("a", "ascending"), ("n", "descending")), [2, 0, 1, 3, 4]),
        (by(("a", "descending")), [4, 3, 0, 1, 2]),
    ],
)
async def test_sort(parameters: dict[str, Any], expected: list[int]) -> None:
    """Fields are compared one after another, texts without regard to case; what is missing comes last."""
    [out] = await run_type(sort.TYPE, parameters, PEOPLE)
    assert [item["pairedItem"]["item"] for item in out] == expected
    assert jsons(out) == [PEOPLE[index] for index in expected]


async def test_sort_values_of_several_types() -> None:
    """Values of one type are sorted among themselves: null, truth values, numbers, texts, then lists and objects."""
    values = [{"b": 1}, "10", 9.5, True, [2], None, 10, "9", False, [1]]
    [out] = await run_type(sort.TYPE, by(("v", "ascending")), [{"v": value} for value in values])
    assert [one["v"] for one in jsons(out)] == [None, False, True, 9.5, 10, "10", "9", [1], [2], {"b": 1}]


async def test_sort_by_an_unknown_field() -> None:
    """A field that no item has is an error, not an order."""
    with pytest.raises(NodeError, match=r"no item has the field 'a\.b'.*disableDotNotation off"):
        await run_type(sort.TYPE, by(("a.b", "ascending"), disableDotNotation=True), PEOPLE)


async def test_random_order_can_be_repeated() -> None:
    """A shuffle has all items, is another order, and is the same each time, also among equal items."""
    rows = [{"n": index % 7} for index in range(50)]
    [once] = await run_type(sort.TYPE, {"type": "random"}, rows)
    [again] = await run_type(sort.TYPE, {"type": "random"}, rows)
    places = [item["pairedItem"]["item"] for item in once]
    assert once == again
    assert sorted(places) == list(range(50))
    assert places != list(range(50))


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, [0]),
        ({"maxItems": 2}, [0, 1]),
        ({"maxItems": 2, "keep": "lastItems"}, [3, 4]),
        ({"maxItems": 9, "keep": "lastItems"}, [0, 1, 2, 3, 4]),
        ({"maxItems": "={{ $json.n }}"}, [0, 1, 2]),
    ],
)
async def test_limit(parameters: dict[str, Any], expected: list[int]) -> None:
    """So many items are kept from the beginning or the end."""
    [out] = await run_type(limit.TYPE, parameters, PEOPLE)
    assert [item["pairedItem"]["item"] for item in out] == expected


DOUBLES = [
    {"a": 1, "b": {"c": "x"}},
    {"b": {"c": "x"}, "a": 1.0},
    {"a": True, "b": {"c": "x"}},
    {"a": 1, "b": {"c": "y"}},
    {"a": None, "b": {"c": "x"}},
]


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({}, [0, 2, 3, 4]),
        ({"compare": "selectedFields", "fieldsToCompare": "b.c"}, [0, 3]),
        ({"compare": "selectedFields", "fieldsToCompare": "a"}, [0, 2, 4]),
        ({"compare": "allFieldsExcept", "fieldsToExclude": "a"}, [0, 3]),
        ({"compare": "allFieldsExcept", "fieldsToExclude": "b.c"}, [0, 2, 4]),
        (
            {"compare": "allFieldsExcept", "fieldsToExclude": "b.c", "options": {"disableDotNotation": True}},
            [0, 2, 3, 4],
        ),
    ],
)
async def test_remove_duplicates(parameters: dict[str, Any], expected: list[int]) -> None:
    """Of equal items the first stays; 1 is 1.0, but neither true nor null."""
    [out] = await run_type(remove_duplicates.TYPE, parameters, DOUBLES)
    assert [item["pairedItem"]["item"] for item in out] == expected
    assert jsons(out) == [DOUBLES[index] for index in expected]


async def test_remove_duplicates_and_other_fields() -> None:
    """Only what was compared is left if that is wanted, as it was."""
    parameters = {"compare": "selectedFields", "fieldsToCompare": "b.c", "options": {"removeOtherFields": True}}
    [out] = await run_type(remove_duplicates.TYPE, parameters, DOUBLES)
    assert jsons(out) == [{"b": {"c": "x"}}, {"b": {"c": "y"}}]
    with pytest.raises(NodeError, match="item 1 has no field 'b' to compare"):
        await run_type(remove_duplicates.TYPE, {"compare": "selectedFields", "fieldsToCompare": "b"}, [{"b": 1}, {}])


@pytest.mark.parametrize(
    ("kind", "parameters", "expected"),
    [
        (split_out.TYPE, {"fieldToSplitOut": "={{ $json.field }}"}, None),
        (split_out.TYPE, {"fieldToSplitOut": ["a", "b"]}, None),
        (split_out.TYPE, {"fieldToSplitOut": [1]}, "fieldToSplitOut: must name a field"),
        (split_out.TYPE, {}, "fieldToSplitOut: must name a field"),
        (split_out.TYPE, {"fieldToSplitOut": "a", "include": "selectedOtherFields"}, "fieldsToInclude: must name"),
        (split_out.TYPE, {"fieldToSplitOut": "a", "include": "some"}, "include: must be one of noOtherFields"),
        (aggregate.TYPE, lists("a"), None),
        (aggregate.TYPE, whole(), None),
        (aggregate.TYPE, {}, "fieldsToAggregate.fieldToAggregate: must name the fields"),
        (aggregate.TYPE, {"aggregate": "sum"}, "aggregate: must be one of"),
        (aggregate.TYPE, whole(include="none"), "include: must be one of"),
        (sort.TYPE, by(("a", "ascending")), None),
        (sort.TYPE, {"type": "random"}, None),
        (sort.TYPE, {}, "sortFieldsUi.sortField: must name the fields"),
        (sort.TYPE, by(("a", "up")), "sortFieldsUi.sortField[0].order: must be one of"),
        (sort.TYPE, by(("", "ascending")), "sortFieldsUi.sortField[0]: must have a fieldName"),
        (sort.TYPE, {"type": "code"}, 'type: "code" is not supported: flows have no code; use'),
        (sort.TYPE, {"type": "={{ 1 }}"}, "type: must be written out"),
        (limit.TYPE, {"maxItems": "={{ 1 }}"}, None),
        (limit.TYPE, {"maxItems": "3"}, None),
        (limit.TYPE, {"maxItems": "0"}, "maxItems: must be a whole number from 1"),
        (limit.TYPE, {"maxItems": True}, "maxItems: must be a whole number from 1"),
        (limit.TYPE, {"maxItems": 0}, "maxItems: must be a whole number from 1"),
        (limit.TYPE, {"maxItems": 1.5}, "maxItems: must be a whole number from 1"),
        (limit.TYPE, {"keep": "middle"}, "keep: must be one of firstItems, lastItems"),
        (remove_duplicates.TYPE, {"operation": "removeDuplicateInputItems"}, None),
        (remove_duplicates.TYPE, {"operation": "removeItemsSeenInPreviousExecutions"}, "operation: "),
        (remove_duplicates.TYPE, {"operation": "clearDeduplicationHistory"}, "operation: "),
        (remove_duplicates.TYPE, {"compare": "selectedFields"}, "fieldsToCompare: must name fields"),
        (
            remove_duplicates.TYPE,
            {"compare": "allFieldsExcept", "fieldsToExclude": " , "},
            "fieldsToExclude: must name",
        ),
    ],
)
def test_checks(kind: Any, parameters: dict[str, Any], expected: str | None) -> None:
    """What cannot be done is told before anything runs, with what to do instead."""
    found = rules(kind, parameters)
    assert len(found) == (expected is not None), found
    assert expected is None or found[0].startswith(expected)
