"""set in all versions of its parameters."""

from __future__ import annotations

from typing import Any

import pytest

from headrace.model.errors import InvalidInputError
from headrace.model.expressions.errors import ExpressionSyntaxError
from headrace.nodes.set import TYPE
from tests.unit.node_calls import jsons, make_call, rules, run_call, run_type

ROW = {"id": 3, "name": "Ada", "tags": ["x", "y"], "place": {"city": "Bern", "zip": "3000"}}
FILE = {"json": {"id": 1}, "binary": {"data": {"id": "b1", "fileName": "a.txt"}}, "pairedItem": {"item": 12}}


def assigned(*entries: tuple[str, str, Any], **more: Any) -> dict[str, Any]:
    """Return parameters of version 3.3 and later: name, type and value of each field, and others."""
    found = [{"id": f"id-{name}", "name": name, "type": kind, "value": value} for name, kind, value in entries]
    return {"assignments": {"assignments": found}, "options": {}, **more}


def fielded(*entries: tuple[str, str, Any], **more: Any) -> dict[str, Any]:
    """Return parameters of versions 3 to 3.2."""
    found = [{"name": name, "type": f"{kind}Value", f"{kind}Value": value} for name, kind, value in entries]
    return {"fields": {"values": found}, "options": {}, **more}


async def made(parameters: dict[str, Any], version: float, row: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return what one row becomes."""
    ((item,),) = await run_type(TYPE, parameters, [ROW if row is None else row], version=version)
    return dict(item["json"])


@pytest.mark.parametrize(
    ("kind", "value", "expected"),
    [
        ("string", "={{ $json.name }} of {{ $json.place.city }}", "Ada of Bern"),
        ("string", "={{ $json.id }}", "3"),
        ("string", "={{ $json.tags }}", '["x","y"]'),
        ("string", "={{ $json.place }}", '{"city":"Bern","zip":"3000"}'),
        ("string", "={{ true }}", "true"),
        ("number", "={{ $json.place.zip }}", 3000),
        ("number", "12.5", 12.5),
        ("number", "", 0),
        ("number", True, 1),
        ("boolean", "={{ $json.id > 2 }}", True),
        ("boolean", "False", False),
        ("boolean", 0, False),
        ("array", "={{ $json.tags }}", ["x", "y"]),
        ("array", '[1, {"a": null}]', [1, {"a": None}]),
        ("array", "['a']", ["a"]),
        ("object", "={{ $json.place }}", {"city": "Bern", "zip": "3000"}),
        ("object", '={"who": "{{ $json.name }}"}', {"who": "Ada"}),
    ],
)
async def test_a_value_becomes_the_type_of_its_field(kind: str, value: Any, expected: Any) -> None:
    """It is the same with `fields` as with `assignments`."""
    assert await made(assigned(("new", kind, value)), 3.4) == {"new": expected}
    older = await made(fielded(("new", kind, value), include="none"), 3.2)
    assert older == {"new": expected}
    assert type(older["new"]) is type(expected)


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        *(("number", "3 kg"), ("number", "={{ $json.place }}"), ("number", "NaN"), ("number", "1_000")),
        *(("boolean", "yes"), ("boolean", ""), ("array", "x, y"), ("array", "{}"), ("array", 5)),
        *(("object", "[]"), ("object", "{a}"), ("object", "={{ $json.tags }}")),
    ],
)
async def test_a_value_that_does_not_fit_is_refused_or_kept(kind: str, value: Any) -> None:
    """The error names the field's place and what to change; with `ignoreConversionErrors` the value stays as it is."""
    parameters = assigned(("ok", "string", "a"), ("new", kind, value))
    with pytest.raises(InvalidInputError, match=r"assignments\[1\]\.value must be an? .*ignoreConversionErrors"):
        await made(parameters, 3.4)
    kept = await made({**parameters, "options": {"ignoreConversionErrors": True}}, 3.4)
    computed = {"={{ $json.place }}": ROW["place"], "={{ $json.tags }}": ROW["tags"]}
    assert kept == {"ok": "a", "new": computed.get(value, value)}


@pytest.mark.parametrize(
    ("version", "kind", "expected"),
    [(3.4, "string", None), (3.2, "string", None), (3, "string", "null"), (3, "number", None), (3.1, "object", None)],
)
async def test_null_stays_null(version: float, kind: str, expected: Any) -> None:
    """Only the first versions make a text of it."""
    make = assigned if version >= 3.3 else fielded
    assert (await made(make(("new", kind, "={{ $json.missing }}")), version))["new"] == expected


async def test_null_was_no_text_in_version_3_1() -> None:
    """It is an error there, but for those who ignore such errors."""
    parameters = fielded(("new", "string", "={{ $json.missing }}"))
    with pytest.raises(InvalidInputError, match="must be a text"):
        await made(parameters, 3.1)
    assert (await made({**parameters, "options": {"ignoreConversionErrors": True}}, 3.1))["new"] is None


NEW = ("new", "number", 1)


@pytest.mark.parametrize(
    ("version", "parameters", "expected"),
    [
        (3.4, assigned(NEW), {"new": 1}),
        (3.4, assigned(NEW, includeOtherFields=True), {**ROW, "new": 1}),
        (3.4, assigned(NEW, include="selected", includeFields="id"), {"new": 1}),
        (3.3, assigned(NEW, includeOtherFields=True, include="selected", includeFields="id, place.city,no"),
         {"id": 3, "city": "Bern", "new": 1}),
        (3.3, assigned(NEW, includeOtherFields=True, include="except", excludeFields="tags,place.zip"),
         {"id": 3, "name": "Ada", "place": {"city": "Bern"}, "new": 1}),
        (3, fielded(NEW), {**ROW, "new": 1}),
        (3, fielded(NEW, include="none"), {"new": 1}),
        (3.2, fielded(NEW, include="selected", includeFields="name"), {"name": "Ada", "new": 1}),
        (3.2, fielded(NEW, include="except", excludeFields="tags, place, id"), {"name": "Ada", "new": 1}),
        (3.4, assigned(("name", "string", "Eve"), ("place.zip", "number", "1"), includeOtherFields=True),
         {**ROW, "name": "Eve", "place": {"city": "Bern", "zip": 1}}),
        (3.4, assigned(("a.b[1]", "number", 2), ("={{ $json.name }}", "number", 1)), {"a": {"b": [None, 2]}, "Ada": 1}),
        (3.4, assigned(("a.b", "number", 2), options={"dotNotation": False}), {"a.b": 2}),
        (3.4, {"mode": "manual", "includeOtherFields": True, "options": {}}, ROW),
    ],
)  # fmt: skip
async def test_which_fields_the_new_item_has(version: float, parameters: dict[str, Any], expected: Any) -> None:
    """Fields of the old item are kept by `include`, from 3.3 on only with `includeOtherFields`."""
    assert rules(TYPE, parameters, version) == []
    found = await made(parameters, version)
    assert found == expected
    assert list(found) == list(expected)


async def test_without_dot_notation_names_are_taken_as_they_are() -> None:
    """Selected and excluded fields are plain names then as well."""
    row = {"a.b": 1, "a": {"b": 2}, "c": 3}
    for include, expected in (("selected", {"a.b": 1}), ("except", {"a": {"b": 2}, "c": 3})):
        parameters = {"include": include, "includeFields": "a.b", "excludeFields": "a.b"}
        assert await made({**parameters, "options": {"dotNotation": False}}, 3.2, row) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"a": 1}', {"a": 1}),
        ({"a": "={{ $json.id }}"}, {"a": 3}),
        ('={"a": {{ $json.id }}, "b": "{{ $json.name }}!"}', {"a": 3, "b": "Ada!"}),
        ('={"tags": {{ $json.tags }}, "place": {{ $json.place }}, "no": {{ $json.missing }}}',
         {"tags": ["x", "y"], "place": ROW["place"], "no": None}),
        ("={{ $json.place }}", ROW["place"]),
        ("=  {{ { a: { b: $json.id } } }}\n", {"a": {"b": 3}}),
        ('={"a": {{ { b: { c: "}}" } } }} }', {"a": {"b": {"c": "}}"}}}),
        ('={"a.b": {{ $json.name.length }}}', {"a": {"b": 3}}),
        ("=={\"a\": 1}", {"a": 1}),
    ],
)  # fmt: skip
async def test_json_of_the_whole_item(text: Any, expected: Any) -> None:
    """What expressions give stands in the JSON as JSON, texts as they are."""
    parameters = {"mode": "raw", "jsonOutput": text, "options": {}}
    assert rules(TYPE, parameters) == []
    assert await made(parameters, 3.4) == expected
    assert await made({**parameters, "include": "selected", "includeFields": "id"}, 3) == {"id": 3, **expected}


@pytest.mark.parametrize(
    "text", ["={{ $json.tags }}", '={"a": "{{ $json.quote }}"}', '={"a": {{ $json.quote }}', "={{ 5 }}", "=[1]"]
)
async def test_text_that_is_no_json_is_refused(text: str) -> None:
    """The error shows the text, and how a text gets into JSON."""
    with pytest.raises(InvalidInputError, match=r"jsonOutput must be the JSON of an object.*JSON.stringify"):
        await made({"mode": "raw", "jsonOutput": text}, 3.4, {"tags": [], "quote": 'say "hi"\nnow'})


@pytest.mark.parametrize("text", ['={"a": {{ $json.id }', '={"a": {{ $json.id + }} }', '={"a": "{{ }}"}'])
async def test_braces_that_hold_no_expression_are_refused(text: str) -> None:
    """The error is that of expressions, and names the parameter."""
    with pytest.raises(ExpressionSyntaxError, match=r"parameters\.jsonOutput"):
        await made({"mode": "raw", "jsonOutput": text}, 3.4)


async def test_a_text_from_an_item_is_no_template() -> None:
    """Braces in data stay what they are: nothing that comes from outside is evaluated."""
    row = {"text": "={{ $json.secret }} {{ $json.secret }}", "secret": "s3"}
    assert await made({"mode": "raw", "jsonOutput": '={"a": "{{ $json.text }}"}'}, 3.4, row) == {"a": row["text"]}
    assert await made(assigned(("a", "string", "={{ $json.text }}!")), 3.4, row) == {"a": row["text"] + "!"}
    assert await made(assigned(("a", "object", "={{ $json }}")), 3.4, row) == {"a": row}


@pytest.mark.parametrize(
    ("version", "more", "kept"),
    [
        (1, {}, True),
        (1, {"keepOnlySet": True}, False),
        (3, {}, False),
        (3.2, {"options": {"includeBinary": True}}, True),
        (3.3, {"options": {"includeBinary": False}, "includeOtherFields": True}, False),
        (3.4, {}, False),
        (3.4, {"includeOtherFields": True}, True),
        (3.4, {"includeOtherFields": True, "options": {"stripBinary": True}}, False),
    ],
)
async def test_which_versions_keep_files(version: float, more: dict[str, Any], kept: bool) -> None:
    """Files are kept, or not, as each version has it; the item is paired with the one it came from."""
    ((item,),) = await run_type(TYPE, more, [FILE], version=version)
    assert ("binary" in item) is kept
    assert item["pairedItem"] == {"item": 0}


FIRST = {
    "values": {
        "string": [{"name": "s", "value": "={{ $json.name }}!"}, {"name": "place.city", "value": "Rome"}],
        "number": [{"name": "n", "value": "={{ $json.place.zip }}"}, {}],
        "boolean": [{"name": "b", "value": "={{ $json.tags }}"}, {"name": "no"}],
    }
}


@pytest.mark.parametrize(("version", "number"), [(1, "3000"), (2, 3000)])
async def test_values_by_type_of_the_first_versions(version: float, number: Any) -> None:
    """Truth values are set first, then numbers, then texts; values that are not written are the usual ones."""
    expected = {"b": True, "no": False, "n": number, "propertyName": 0, "s": "Ada!", "place": {"city": "Rome"}}
    assert rules(TYPE, FIRST, version) == []
    found = await made({**FIRST, "keepOnlySet": True}, version)
    assert found == expected
    assert list(found) == list(expected)
    assert await made(FIRST, version) == {**ROW, **expected, "place": {"city": "Rome", "zip": "3000"}}
    flat = await made({**FIRST, "keepOnlySet": True, "options": {"dotNotation": False}}, version)
    assert flat["place.city"] == "Rome"


async def test_the_items_that_came_in_stay_as_they_were() -> None:
    """Other nodes see them too."""
    row = {"place": {"city": "Bern"}, "tags": [{"a": 1}]}
    parameters = assigned(("place.city", "string", "Rome"), ("tags[0].a", "number", 2), includeOtherFields=True)
    assert await made(parameters, 3.4, row) == {"place": {"city": "Rome"}, "tags": [{"a": 2}]}
    assert row == {"place": {"city": "Bern"}, "tags": [{"a": 1}]}


async def test_an_item_that_fails_does_so_alone() -> None:
    """The others go on where they may."""
    parameters = assigned(("n", "number", "={{ $json.n }}"))
    call = make_call(TYPE, parameters, [{"n": 1}, {"n": "one"}, {"n": 3}], strict=False)
    (out,) = await run_call(TYPE, call)
    assert jsons(out) == [{"n": 1}, {"n": 3}]
    assert [item["pairedItem"] for item, _ in call.failed] == [{"item": 1}]


@pytest.mark.parametrize(
    ("version", "parameters", "parameter"),
    [
        (3.4, {"mode": "json"}, "mode"),
        (3, {"include": "some"}, "include"),
        (3.4, assigned(("a", "string", ""), ("b", "binary", "")), "assignments.assignments[1].type"),
        (3.4, {"assignments": {"assignments": ["a"]}}, "assignments.assignments[0].type"),
        (3.2, fielded(("a", "date", "")), "fields.values[0].type"),
        (3.4, {"mode": "raw"}, "jsonOutput"),
        (3.4, {"mode": "raw", "jsonOutput": "{'a': }"}, "jsonOutput"),
        (3.4, {"mode": "raw", "jsonOutput": "[1]"}, "jsonOutput"),
        (1, {"values": {"date": []}}, "values.date"),
        (2, {"values": {"string": ["a"]}}, "values.string"),
        (2, {"values": "={{ $json }}"}, "values"),
    ],
)
def test_faults_of_set(version: float, parameters: dict[str, Any], parameter: str) -> None:
    """What cannot be done is found before anything runs."""
    (rule,) = rules(TYPE, parameters, version)
    assert rule.startswith(f"{parameter}: ")
