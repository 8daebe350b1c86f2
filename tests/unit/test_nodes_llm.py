"""Nodes that ask a model: what it is asked, where its answer goes, and which schemas are taken."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from headrace.nodes import information_extractor, llm_chat, llm_extract
from headrace.nodes.base import NodeError
from headrace.nodes.patterns import weight_of
from headrace.nodes.schemas import checked, of_attributes, of_example
from tests.unit.node_calls import FakeServices, jsons, rules, run_type

CHAT, EXTRACT, OTHER = llm_chat.TYPE, llm_extract.TYPE, information_extractor.TYPE
TEXT = {"type": "string"}
CITY = {"type": "object", "properties": {"city": TEXT}, "required": ["city"]}


class Spoken:
    """A model that says what it is told to, and writes down what it was asked."""

    def __init__(self, answer: Any = "well") -> None:
        self.answer, self.truncated = answer, False
        self.asked: list[dict[str, Any]] = []

    async def chat(self, prompt: str, **manner: Any) -> Mapping[str, Any]:
        """Return the text, and what it took."""
        self.asked.append({"prompt": prompt, **manner})
        cut = {"truncated": True} if self.truncated else {}
        return {"text": self.answer, "model": "m-1", "input_tokens": 3, "output_tokens": 1, **cut}

    async def extract(self, schema: Mapping[str, Any], prompt: str, **manner: Any) -> Any:
        """Return the data."""
        self.asked.append({"schema": schema, "prompt": prompt, **manner})
        return self.answer


async def test_a_chat_answers_into_a_field_of_each_item() -> None:
    """The input's JSON and binary data are kept; the answer, and what it took, stand beside."""
    model = Spoken()
    item = {"json": {"id": 7}, "binary": {"data": {"id": "b"}}}
    parameters = {"prompt": "How is it?", "system": "Be short.", "model": "strong", "maxTokens": 50, "temperature": 1,
                  "usageField": "usage"}  # fmt: skip
    [[found]] = await run_type(CHAT, parameters, [item], services=FakeServices(model=model))

    usage = {"model": "m-1", "input_tokens": 3, "output_tokens": 1}
    assert found == {**item, "json": {"id": 7, "text": "well", "usage": usage}, "pairedItem": {"item": 0}}
    manner = {"system": "Be short.", "model": "strong", "max_tokens": 50, "temperature": 1.0}
    assert model.asked == [{"prompt": "How is it?", **manner}]


async def test_a_chat_asks_plainly_unless_told() -> None:
    """Without more than a prompt the usual model is asked; the field may be called otherwise."""
    model = Spoken()
    parameters = {"prompt": "?", "outputField": "reply", "options": {"maxTokens": "20"}}
    [found] = await run_type(CHAT, parameters, [{"a": 1}, {"a": 2}], services=FakeServices(model=model))
    assert jsons(found) == [{"a": 1, "reply": "well"}, {"a": 2, "reply": "well"}]
    assert [item["pairedItem"] for item in found] == [{"item": 0}, {"item": 1}]
    assert model.asked == [{"prompt": "?", "system": None, "model": None, "max_tokens": 20, "temperature": 0.0}] * 2


async def test_a_cut_answer_says_so() -> None:
    """It is a part of one, whether or not anybody asked what it took."""
    model = Spoken()
    model.truncated = True
    [found] = await run_type(CHAT, {"prompt": "?"}, [{}], services=FakeServices(model=model))
    assert jsons(found) == [{"text": "well", "truncated": True}]


@pytest.mark.parametrize(("kind", "field"), [(CHAT, "prompt"), (EXTRACT, "text"), (OTHER, "text")])
async def test_nothing_is_asked_for_an_empty_text(kind: Any, field: str) -> None:
    """An item whose text is blank is an error, and costs nothing."""
    model = Spoken()
    parameters = {field: " ", "schema": CITY, "inputSchema": CITY, "schemaType": "manual"}
    with pytest.raises(NodeError, match=f"{field} is empty"):
        await run_type(kind, parameters, [{}], services=FakeServices(model=model))
    assert model.asked == []


@pytest.mark.parametrize(
    ("parameters", "field"),
    [
        ({}, "output"),
        ({"outputField": "found"}, "found"),
    ],
)
async def test_an_extraction_puts_data_into_a_field(parameters: dict[str, Any], field: str) -> None:
    """The model gets text, instructions and schema; the item keeps what it had."""
    model = Spoken({"city": "Oslo"})
    given = {"text": "I live in Oslo.", "schema": json.dumps(CITY), "instructions": "Cities.", **parameters}
    [found] = await run_type(EXTRACT, given, [{"id": 1}], services=FakeServices(model=model))
    assert jsons(found) == [{"id": 1, field: {"city": "Oslo"}}]
    [asked] = model.asked
    assert (asked["prompt"], asked["system"]) == ("I live in Oslo.", "Cities.")
    assert checked(asked["schema"]) == checked(CITY)


async def test_attributes_say_the_same_as_a_schema() -> None:
    """Each attribute has a name, a type, words for it, and may be required."""
    model = Spoken({})
    attributes = [
        {"name": "born", "type": "date", "description": "birthday", "required": True},
        {"name": "tags", "type": "list"},
        {"name": "nick"},
    ]
    given = {"prompt": "…", "attributes": attributes}
    await run_type(EXTRACT, given, [{}], services=FakeServices(model=model))
    [asked] = model.asked
    assert asked["schema"]["required"] == ["born"]
    assert asked["schema"]["properties"] == {
        "born": {"type": "string", "format": "date", "description": "birthday"},
        "tags": {"type": "array", "items": TEXT},
        "nick": TEXT,
    }


@pytest.mark.parametrize(
    ("parameters", "version", "properties", "required"),
    [
        (
            {"attributes": {"attributes": [{"name": "n", "type": "number", "description": "d", "required": True}]}},
            1, {"n": {"type": "number", "description": "d"}}, ["n"],
        ),
        ({"schemaType": "manual", "inputSchema": json.dumps(CITY)}, 1.1, {"city": TEXT}, ["city"]),
        ({"schemaType": "fromJson", "jsonSchemaExample": '{"city": "Oslo"}'}, 1.2, {"city": TEXT}, ["city"]),
        ({"schemaType": "fromJson", "jsonSchemaExample": '{"city": "Oslo"}'}, 1.1, {"city": TEXT}, []),
    ],
)  # fmt: skip
async def test_the_other_nodes_parameters_are_understood(
    parameters: dict[str, Any], version: float, properties: Any, required: list[str]
) -> None:
    """All three ways to say a schema give one, and the output holds the data alone."""
    model = Spoken({"a": 1})
    given = {"text": "…", "options": {"systemPromptTemplate": "Read.", "batching": {"batchSize": 2}}, **parameters}
    assert rules(OTHER, given, version) == []
    [found] = await run_type(OTHER, given, [{"id": 1}], services=FakeServices(model=model), version=version)
    assert jsons(found) == [{"output": {"a": 1}}]
    [asked] = model.asked
    assert (asked["schema"]["properties"], asked["schema"]["required"]) == (properties, required)
    assert asked["system"] == "Read."


@pytest.mark.parametrize(
    ("kind", "parameters", "words"),
    [
        (CHAT, {}, ["prompt: must be the text"]),
        (CHAT, {"prompt": "?", "temperature": 3}, ["temperature: must be a number from 0 to 2, got 3"]),
        (CHAT, {"prompt": "?", "maxTokens": 0}, ["maxTokens: must be a whole number from 1"]),
        (CHAT, {"prompt": "={{ $json.a }}", "temperature": "={{ $json.t }}", "maxTokens": "={{ 5 }}"}, []),
        (EXTRACT, {"text": "…"}, ["schema: must be a JSON Schema, or attributes"]),
        (EXTRACT, {"text": "…", "schema": CITY, "attributes": []}, ["schema: must be a JSON Schema, or attributes"]),
        (EXTRACT, {"text": "…", "schema": "{"}, ["schema: schema is not JSON"]),
        (EXTRACT, {"text": "…", "schema": "={{ $json.schema }}"}, []),
        (EXTRACT, {"text": "…", "attributes": [{"name": "={{ $json.name }}", "type": "x"}]}, []),
        (EXTRACT, {"text": "…", "attributes": [{"name": "a"}, {"name": "a"}]}, [r"attributes: attributes\[1\].name"]),
        (EXTRACT, {"text": "…", "attributes": {}}, ["attributes: parameters.attributes must be a list"]),
        (EXTRACT, {"text": "…", "schema": '{"a": 1e999}'}, ["schema: schema is not JSON: a is a number that JSON has"]),
        (OTHER, {"text": "…"}, ["attributes.attributes: attributes must have an entry"]),
        (OTHER, {"text": "…", "schemaType": "zod"}, ["schemaType: must be one of fromAttributes, fromJson, manual"]),
        (OTHER, {"text": "…", "schemaType": "manual"}, ["inputSchema: schema is not JSON"]),
        (OTHER, {"schemaType": "manual", "inputSchema": CITY}, ["text: must be the text"]),
    ],
)
def test_what_a_model_cannot_be_asked_is_told_before(kind: Any, parameters: Any, words: list[str]) -> None:
    """Wrong parameters are named at the check; what is computed later is not guessed at."""
    found = rules(kind, parameters)
    assert len(found) == len(words)
    for one, expected in zip(found, words, strict=True):
        assert one.startswith(expected.split("\\")[0])


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"type": "text"}, r"schema\.properties\.a\.type must be one of string"),
        ({}, r"a\.type must be one of"),
        (5, "a must be an object with a type"),
        ({"type": "array"}, r"a\.items must say"),
        ({"type": "object"}, r"a\.properties must name"),
        ({"type": "object", "properties": {"b": TEXT}, "required": ["c"]}, "a.required must be a list"),
        ({"type": "object", "properties": {"b": TEXT}, "required": [{}]}, "a.required must be a list"),
        ({"type": "object", "properties": {"b": TEXT}, "additionalProperties": TEXT}, "must be true or false"),
        ({"oneOf": [TEXT]}, r"a\.type must be|a\.oneOf"),
        ({"type": "string", "oneOf": [TEXT]}, r"a\.oneOf is not supported here: use anyOf"),
        ({"type": "string", "nullable": True}, r'nullable is not supported here: use "type"'),
        ({"type": "string", "minimum": 1}, r"a\.minimum is not supported here: leave it out"),
        ({"type": "string", "format": "hostname"}, r"a\.format must be one of date,"),
        ({"type": "string", "pattern": "("}, r"a\.pattern is no regular expression"),
        (
            {"type": "string", "pattern": "(?=a)"},
            r"a\.pattern has '\(\?=a\)' at position 0, which is not taken: no looking",
        ),
        ({"type": "string", "pattern": 5}, r"a\.pattern must be a regular expression, got 5"),
        ({"type": "string", "pattern": "a(?>b)"}, r"has '\(\?>b\)' at position 1"),
        ({"type": "string", "pattern": "a\\Z"}, r"has '\\\\Z' at position 1"),
        ({"type": "string", "pattern": "[[]"}, "no sets within sets"),
        ({"type": "string", "pattern": "x" * 501}, "has more than 500 characters"),
        ({"type": "string", "pattern": r"(\w{20}-){20}"}, "repeats too much"),
        ({"type": "string", "pattern": "(" * 60 + "a" + ")" * 60}, "groups within groups"),
        ({"type": "string", "maxLength": 10**30}, "a.maxLength must be a whole number from 0 to 2147483647"),
        ({"type": "string", "maxLength": -1}, r"a\.maxLength must be a whole number from 0"),
        ({"type": "integer", "minimum": "1"}, r"a\.minimum must be a number"),
        ({"type": "integer", "minimum": 1.5}, "a.minimum must be a whole number as the type is integer, got 1.5"),
        ({"type": "integer", "multipleOf": 0.5}, "a.multipleOf must be a whole number"),
        ({"type": "number", "maximum": 10**400}, r"a\.maximum must be a number from -1e\+300 to 1e\+300"),
        ({"type": "number", "multipleOf": 0}, r"a\.multipleOf must be a number above 0"),
        ({"type": "array", "items": TEXT, "uniqueItems": 1}, r"a\.uniqueItems must be true or false"),
        ({"type": "string", "description": "a\0"}, r"properties\.a\.description holds a NUL character"),
        ({"enum": ["\ud800"]}, r"a\.enum\[0\] holds half of a character"),
        ({"type": "number", "minimum": float("nan")}, "is a number that JSON has not"),
        ({"enum": []}, r"a\.enum must be a list"),
        ({"enum": [1.5]}, r"a\.enum must be a list"),
        ({"anyOf": []}, r"a\.anyOf must be a list"),
        ({"$ref": "#/$defs/none"}, "refers to '#/\\$defs/none'"),
        ({"$ref": "http://example.org/x"}, "only to parts of this schema"),
        ({"$ref": "#/properties/a"}, "refers to #/properties/a within itself"),
    ],
)
def test_schemas_that_nobody_could_keep_are_refused(part: Any, words: str) -> None:
    """Each rule that is not held is named with its place, and with what to write instead."""
    with pytest.raises(NodeError, match=words):
        checked({"type": "object", "properties": {"a": part}})


@pytest.mark.parametrize("schema", [TEXT, {"type": "array", "items": TEXT}, {"enum": ["a"]}, "[]", 5])
def test_a_schema_is_of_an_object(schema: Any) -> None:
    """A model gives named fields; lists stand in one of them."""
    with pytest.raises(NodeError, match="object"):
        checked(schema)


def test_schemas_are_bounded() -> None:
    """Neither depth nor references that multiply cost more than an error."""
    deep: Any = TEXT
    for _ in range(20):
        deep = {"type": "object", "properties": {"a": deep}}
    with pytest.raises(NodeError, match="is too large"):
        checked(deep)
    many = {"type": "object", "properties": {str(n): {"$ref": "#/$defs/10"} for n in range(3)}, "$defs": {"0": TEXT}}
    for level in range(1, 11):
        parts = {side: {"$ref": f"#/$defs/{level - 1}"} for side in "ab"}
        many["$defs"][str(level)] = {"type": "object", "properties": parts}  # type: ignore[index]
    with pytest.raises(NodeError, match="is too large"):
        checked(many)


@pytest.mark.parametrize(
    ("pattern", "weight"),
    [
        (r"^[A-Z]{2}\d{4}$", 2 * 36 + 4 * 60), (r"(?i)a+|\.", 4), (r"(?:\d{1,3}\.){3}\d{1,3}", 4 * 180 + 3 * 2),
        ("a{2,}", 6), (r"[\w.-]{3}", 3 * 574), (r"(?P<year>\s*).", 37), ("a{0}", 2), ("\\u00e9", 2),
    ],
)  # fmt: skip
def test_patterns_weigh_what_they_are_written_out(pattern: str, weight: int) -> None:
    """A part counts as often as it may be repeated by number, groups with all that is in them."""
    assert weight_of(pattern) == weight


def test_patterns_of_a_schema_are_weighed_together() -> None:
    """One may be as heavy as this; four of them are too much for one schema."""
    heavy = {"type": "string", "pattern": r"\w{100}"}
    assert checked({"type": "object", "properties": dict.fromkeys("abc", heavy)})
    with pytest.raises(NodeError, match=r"properties\.d\.pattern is one repetition too many for a schema"):
        checked({"type": "object", "properties": dict.fromkeys("abcd", heavy)})


def test_a_checked_schema_is_plain_and_stays_so() -> None:
    """References are resolved and types with null become alternatives; checking again changes nothing."""
    schema = {
        "$schema": "…", "title": "T", "$defs": {"p": {"type": "number", "minimum": 0}},
        "properties": {"a": {"$ref": "#/$defs/p", "description": "d"}, "b": {"const": None}, "c": {"type": ["null"]}},
    }  # fmt: skip
    plain = checked(schema)
    assert plain["properties"] == {
        "a": {"type": "number", "minimum": 0, "description": "d"},
        "b": {"enum": [None]},
        "c": {"type": "null"},
    }
    assert checked(plain) == plain


@pytest.mark.parametrize("example", [{"a": None}, {"a": []}, {"a": {}}, {}, "[1]", '{"a": [{"b": []}]}'])
def test_an_example_shows_what_is_wanted(example: Any) -> None:
    """Where it has nothing to show, no type is made up."""
    with pytest.raises(NodeError, match="example"):
        of_example(example, all_required=True)


def test_kinds_of_values_in_examples_and_attributes() -> None:
    """Every kind of JSON value has its type, and so has every word for one."""
    example = {"t": "x", "n": 1, "b": True, "l": [{"d": 2.5}]}
    inner = {"type": "object", "properties": {"d": {"type": "number"}}, "required": ["d"]}
    assert of_example(example, all_required=True)["properties"] == {
        "t": TEXT, "n": {"type": "number"}, "b": {"type": "boolean"}, "l": {"type": "array", "items": inner},
    }  # fmt: skip
    for one in ({"name": "a", "type": "map"}, {"name": ""}, {"type": "string"}, "a"):
        with pytest.raises(NodeError, match=r"attributes\[0\]"):
            of_attributes([one])
