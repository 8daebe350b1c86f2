"""Models of flows over `app.llm`: what is paid once, what data look like, and what a schema holds a model to."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from typing import Any

import pytest
from pydantic import ValidationError

from headrace import App, InvalidInputError
from headrace.apps.flows.models import AppModel
from headrace.apps.flows.schemas import model_of, values_of
from headrace.model.provider_errors import BadOutputError
from headrace.model_settings import ModelSettings
from headrace.nodes.base import NodeError
from headrace.nodes.schemas import checked
from headrace.settings import Settings
from headrace.testing.provider import Answers, ScriptedProvider
from tests.unit.engine_app import QUICK

MANNER: dict[str, Any] = {"system": None, "model": None, "max_tokens": None, "temperature": 0.0}
TRIAL = {
    "type": "object",
    "title": "Trial",
    "properties": {
        "first name": {"type": "string", "description": "of the leader"},
        "plants": {"type": "number", "minimum": 1},
        "begun": {"type": "string", "format": "date"},
        "kind": {"enum": ["field", "glass"]},
        "notes": {"type": ["string", "null"]},
    },
    "required": ["first name", "plants"],
}


def settings_of(provider: ScriptedProvider) -> Settings:
    """Return settings of a memory store whose models are the provider's; "other" is one more name for it."""
    given = provider.settings
    model = ModelSettings(
        model=given.model or "", base_url=given.base_url or "", api_key=given.api_key or "", provider="openai"
    )
    return replace(QUICK, llm=model, models={"other": model})


def open_app(provider: ScriptedProvider) -> App:
    """Return an app, not open yet, whose models are the provider's."""
    return App(settings=settings_of(provider))


def in_a_task(app: App, call: Any) -> Any:
    """Register a task of a workflow that calls a model."""

    @app.task
    async def ask() -> Any:
        return await call(AppModel(app))

    app.workflow("flow", ask.s())
    return ask


async def test_a_chat_tells_what_it_took_and_is_paid_once() -> None:
    """Text, model and tokens come back; a second run takes the stored answer at no cost."""
    rules = Answers([{"contains": "river", "answer": "Glomma"}])
    async with ScriptedProvider(rules=rules) as provider:
        app = App(settings=settings_of(provider))
        in_a_task(app, lambda model: model.chat("Name a river.", **MANNER | {"system": "Be short."}))
        async with app.worker():
            first = await (await app.start("flow")).result("10s")
            again = await (await app.start("flow")).result("10s")
        assert provider.count() == 1
    assert first["text"] == again["text"] == "Glomma"
    assert first["model"] == provider.model
    assert first["input_tokens"] > 0
    assert (first["reused"], first["truncated"], again["reused"], again["input_tokens"]) == (False, False, True, 0)
    assert "cost" not in first


async def test_a_cut_answer_and_another_model() -> None:
    """What `max_tokens` cut says so; a model is chosen by its name, and an unknown one is named."""
    async with ScriptedProvider(answer=lambda request: "a long answer " * 20) as provider, open_app(provider) as app:
        model = AppModel(app)
        cut = await model.chat("?", **MANNER | {"max_tokens": 5, "model": "other"})
        assert cut["truncated"]
        with pytest.raises(InvalidInputError, match=r"model must be the name of a configured model \(other\)"):
            await model.chat("?", **MANNER | {"model": "none"})


async def test_data_are_valid_by_the_schema() -> None:
    """In a task: fields of any name, whole numbers without a point; what may be missing and is null is left out."""
    answer = {"first name": "Ada", "plants": 60.0, "begun": None, "kind": "glass", "notes": None}
    async with ScriptedProvider(rules=Answers([{"contains": "Ada", "answer": answer}])) as provider:
        app = App(settings=settings_of(provider))
        in_a_task(app, lambda model: model.extract(TRIAL, "Ada grew 60 plants.", **MANNER))
        async with app.worker():
            found = await (await app.start("flow")).result("10s")
        [asked] = provider.calls
    assert found == {"first name": "Ada", "plants": 60, "kind": "glass", "notes": None}
    assert json.dumps(found["plants"]) == "60"
    assert asked is not None


async def test_a_model_that_never_gives_valid_data_is_an_error() -> None:
    """It is told what was wrong, twice; a schema we do not take is never asked."""
    wrong = {"first name": "Ada", "plants": 0}
    async with ScriptedProvider(answer=lambda request: wrong) as provider, open_app(provider) as app:
        with pytest.raises(BadOutputError, match="plants"):
            await AppModel(app).extract(TRIAL, "?", **MANNER)
        asked = provider.count()
        with pytest.raises(NodeError, match="schema"):
            await AppModel(app).extract({"type": "object"}, "?", **MANNER)
        assert provider.count() == asked > 1


def valid(part: dict[str, Any], value: Any, *, required: bool = True) -> Any:
    """Return what a schema of one property makes of a value. Raises ValidationError."""
    schema = {"type": "object", "properties": {"a": part}, "required": ["a"] if required else []}
    return values_of(model_of(schema).model_validate({"a": value}), schema).get("a", "left out")


TEXTS = {"type": "array", "items": {"type": "string"}}
INNER = {"type": "object", "properties": {"b": {"type": "integer"}, "c": {"type": "string"}}, "required": ["b"]}


@pytest.mark.parametrize(
    ("part", "good", "bad"),
    [
        ({"type": "string", "minLength": 2, "maxLength": 3}, ["ab"], ["a", "abcd", None]),
        ({"type": "string", "pattern": "^[a-z]+$"}, ["ab"], ["A"]),
        ({"type": "string", "format": "date"}, ["2026-03-05"], ["2026-13-05", "20260305", "today"]),
        ({"type": "string", "format": "date-time"}, ["2026-03-05T10:00:00Z"], ["2026-03-05"]),
        ({"type": "string", "format": "time"}, ["10:00"], ["25:00"]),
        ({"type": "string", "format": "email"}, ["a@b.no"], ["a@b", "a b@c.no"]),
        ({"type": "string", "format": "uri"}, ["https://a.no/b"], ["a.no"]),
        ({"type": "string", "format": "uuid"}, ["01a2094c-0862-79e7-b8f8-a1b02035a903"], ["1"]),
        ({"type": "number", "minimum": 1, "maximum": 2}, [1, 1.5, 2], [0.9, 2.1, float("nan"), "x"]),
        ({"type": "integer", "exclusiveMinimum": 1, "exclusiveMaximum": 5, "multipleOf": 2}, [2, 4], [1, 3, 6, 2.5]),
        ({"type": "boolean"}, [True], ["maybe"]),
        ({"type": ["string", "null"], "minLength": 1}, ["a", None], [""]),
        ({"enum": ["a", 1, None]}, ["a", 1, None], ["b", 2]),
        ({"const": "a"}, ["a"], ["b"]),
        ({**TEXTS, "minItems": 1, "maxItems": 2, "uniqueItems": True}, [["a"]], [[], ["a", "b", "c"], ["a", "a"]]),
        ({"type": "array", "items": INNER}, [[{"b": 1}, {"b": 2, "c": "x"}]], [[{"c": "x"}], [{"b": "x"}]]),
        ({"anyOf": [TEXTS, {"type": "integer"}]}, [["a"], 5], ["a", {}]),
        ({**INNER, "additionalProperties": False}, [{"b": 1}], [{"b": 1, "d": 2}]),
        ({"type": "null"}, [None], [1]),
    ],
)
def test_rules_of_schemas_are_kept(part: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    """What is valid comes back as it was; anything else is told to the model as wrong."""
    for value in good:
        assert valid(part, value) == value
        assert type(valid(part, value)) is type(value)
    for value in bad:
        with pytest.raises(ValidationError):
            valid(part, value)


def test_what_may_be_missing_is_left_out() -> None:
    """Null stands only where the schema has it: at any depth, in lists too."""
    assert valid({"type": "string"}, None, required=False) == "left out"
    assert valid({"type": ["string", "null"]}, None, required=False) is None
    assert valid({"type": "array", "items": INNER}, [{"b": 1, "c": None}]) == [{"b": 1}]
    assert valid({"anyOf": [{"type": "null"}, INNER]}, {"b": 1, "c": None}) == {"b": 1}


def test_models_speak_of_the_fields_as_the_schema_does() -> None:
    """Names that Python or models would not take, and descriptions at any depth, are in what the model is shown."""
    keys = ["first name", "class", "_id", "model_config", "json", "1st"]
    schema = {
        "type": "object",
        "properties": {
            **{key: {"type": "string", "description": f"the {key}"} for key in keys},
            "list": {"type": "array", "items": {"type": "string", "description": "one of them"}},
        },
        "required": keys,
    }
    model = model_of(schema)
    shown = model.model_json_schema()
    assert list(shown["properties"]) == [*keys, "list"]
    assert shown["properties"]["_id"]["description"] == "the _id"
    assert "one of them" in json.dumps(shown)
    value = dict.fromkeys(keys, "x")
    assert values_of(model.model_validate(value), schema) == value
    assert model_of(dict(schema)) is model


def of(part: Any) -> dict[str, Any]:
    """Return a schema of one property."""
    return {"type": "object", "properties": {"a": part}}


def nested(part: Any, times: int, wrap: Any) -> Any:
    """Return a part within itself."""
    for _ in range(times):
        part = wrap(part)
    return part


def may_be_null(part: Any) -> dict[str, Any]:
    """Return a list that may be null."""
    return {"type": ["array", "null"], "items": part}


TEXT = {"type": "string"}
NULLABLE = {"type": ["string", "null"]}


@pytest.mark.parametrize(
    ("schema", "taken"),
    [
        ({"type": "object", "properties": {f"f{number}": NULLABLE for number in range(200)}}, True),
        ({"type": "object", "properties": {f"f{number}": NULLABLE for number in range(400)}}, False),
        (of(nested(TEXT, 9, may_be_null)), True),
        (of(nested(TEXT, 15, may_be_null)), True),
        (of(nested(TEXT, 16, may_be_null)), False),
        (of(nested(NULLABLE, 7, lambda part: {"type": ["object", "null"], "properties": {"a": part}})), True),
        (of(nested(NULLABLE, 15, lambda part: {"type": ["null", "object"], "properties": {"a": part}})), True),
        (of(nested(NULLABLE, 16, lambda part: {"type": ["null", "object"], "properties": {"a": part}})), False),
        (of(nested(NULLABLE, 12, lambda part: {"anyOf": [part, {"type": "null"}]})), True),
        (of({"type": ["string"] * 1_000}), False),
        (of({"type": "integer", "minimum": 1.5}), False),
        (of({"type": "integer", "minimum": 1.0}), True),
        (of({"type": "integer", "minimum": -(10**30)}), True),
        (of({"type": "integer", "multipleOf": 0.5}), False),
        (of({"type": ["integer", "number"], "minimum": 0.5}), False),
        (of({"type": "number", "minimum": 10**299, "multipleOf": 1e-300}), True),
        (of({"type": "number", "maximum": 10**400}), False),
        (of({"type": "string", "minLength": 10**30}), False),
        (of({"type": "array", "items": TEXT, "minItems": 2**31 - 1}), True),
        (of({"enum": ["\ud800"]}), False),
        (of({"type": "string", "description": "\ud800"}), False),
        ({"title": "\0", **of(TEXT)}, False),
        *[(of({"type": "string", "pattern": pattern}), True) for pattern in (
            "(a+)+$", r"\w{90}", r"^[\w.+-]+@[\w-]+\.[a-z]{2,}$", r"(?i)a]}", r"[\d-]{1,50}", r"\u00e9\x41[é-ü]",
            "a||b", "", r"[^\]^]", r"(?:a{2}?)*?", r"(?P<n>a)\/\"\ ", r"(?:\d{1,3}\.){3}\d{1,3}", "[a-z]{1000}",
        )],
        *[(of({"type": "string", "pattern": pattern}), False) for pattern in (
            "(?>a)", r"a\Z", "a++", "(?:(?:(?:a{1,999}){1,999}){1,999})", r"\w{300}", "[a&&b]", "[[]", "[]a]", "[^]a]",
            "a{,3}", "{", r"\0", "(?a)a", "(?#x)a", r"\ud800", r"[\b]", r"\N{DIGIT ONE}", "a{\u0663}", r"\e", "(?=a)",
            r"(a)\1", "(?P<n>a)(?P<n>b)", "(a", "a)", "a{3,2}", "(a" * 150 + ")" * 150,
        )],
    ],
)  # fmt: skip
def test_a_schema_has_one_verdict(schema: dict[str, Any], taken: bool) -> None:
    """What is taken at the check is a model when the flow runs, from the schema as from its plain form."""
    if not taken:
        with pytest.raises(NodeError, match="schema"):
            checked(schema)
        with pytest.raises(NodeError):
            model_of(schema)
        return
    plain = checked(schema)
    assert checked(plain) == plain
    assert model_of(plain) is model_of(schema)


def part_of(draw: random.Random, depth: int = 0) -> Any:
    """Return a random part of a schema, taken or not."""
    names = ["string", "number", "integer", "boolean", "null", "array", "object"]
    number: Any = draw.choice([0, 1, 2, 0.5, 2.0, -3, 1e300, 10**20, 2**31])
    kind = draw.choice([draw.choice(names), draw.sample(names, draw.randint(1, 3))])
    if depth > 3 or draw.random() < 0.1:
        return draw.choice([{"enum": ["a", 1, None]}, {"const": True}, {"$ref": "#/$defs/d"}, TEXT])
    if draw.random() < 0.15:
        return {"anyOf": [part_of(draw, depth + 1) for _ in range(draw.randint(1, 3))]}
    part: dict[str, Any] = {"type": kind}
    kinds = kind if isinstance(kind, list) else [kind]
    if "array" in kinds:
        part["items"] = part_of(draw, depth + 1)
    if "object" in kinds:
        part["properties"] = {name: part_of(draw, depth + 1) for name in draw.sample("abc", draw.randint(1, 3))}
    rules: list[tuple[str, Any]] = [("minimum", number), ("multipleOf", number), ("exclusiveMaximum", number)]
    if not {"number", "integer"} & set(kinds):
        rules = [("pattern", "".join(draw.choices(PIECES, k=draw.randint(1, 4)))), ("maxLength", number)]
    return part | dict([draw.choice(rules)] if {"number", "integer", "string"} & set(kinds) else [])


PIECES = ["a", "[a-z]", r"\w", r"\d{2}", "{3}", "+", "?", "(", ")", "|", "^", "$", ".", "[^a]", r"\-", "(?:", "{2,9}"]


def test_random_schemas_have_one_verdict() -> None:
    """Each that is taken is a model, and is its own plain form then; both kinds are among them."""
    draw = random.Random(7)
    taken = 0
    for _ in range(300):
        schema = {**of(part_of(draw)), "$defs": {"d": {"type": ["integer", "null"], "minimum": 1}}}
        try:
            plain = checked(schema)
        except NodeError:
            continue
        taken += 1
        assert checked(plain) == plain
        assert model_of(plain) is model_of(schema)
    assert 50 < taken < 250, taken
