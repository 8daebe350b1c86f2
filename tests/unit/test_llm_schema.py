"""Schemas for strict modes: everything required, nothing beside it, and rules told as hints."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field

from headrace.llm.schema import NotStrictError, schema_name, strict_schema


class Colour(Enum):
    """A choice."""

    RED = "red"
    BLUE = "blue"


class Site(BaseModel):
    """A nested model."""

    code: str = Field(max_length=3, pattern="[A-Z]+")


class Study(BaseModel):
    """A model with everything in it."""

    n: int = Field(ge=1, default=5, description="how many")
    share: float | None = None
    colour: Colour
    kind: Literal["a", "b"]
    only: Literal["x"]
    sites: list[Site] = Field(min_length=1)
    main: Site = Field(description="the main site")
    on: date
    tags: list[str] = []


def objects(node: Any) -> Iterator[dict[str, Any]]:
    """All schema nodes."""
    if isinstance(node, dict):
        yield node
        for value in node.values():
            yield from objects(value)
    elif isinstance(node, list):
        for value in node:
            yield from objects(value)


def test_every_object_requires_all_its_fields_and_no_other() -> None:
    """Strict modes refuse optional fields and open objects."""
    found = [node for node in objects(strict_schema(Study)) if node.get("type") == "object"]

    assert len(found) == 2
    for node in found:
        assert node["additionalProperties"] is False
        assert node["required"] == list(node["properties"])


def test_no_keyword_is_left_that_strict_modes_refuse() -> None:
    """Only types, choices, references and descriptions remain."""
    allowed = {"type", "enum", "description", "properties", "required", "additionalProperties"}
    allowed |= {"items", "anyOf", "$ref", "$defs"}
    schema = strict_schema(Study)
    names = {name for node in objects(schema) for name in node.get("properties", {})} | set(schema["$defs"])

    assert {key for node in objects(schema) for key in node} - allowed - names == set()


def test_rules_become_hints_for_the_model() -> None:
    """What the schema may not say is said in words; the value is checked afterwards anyway."""
    fields = strict_schema(Study)["properties"]

    assert fields["n"]["description"] == "how many (minimum: 1, default: 5)"
    assert fields["on"]["description"] == "(format: date)"
    assert fields["sites"]["description"] == "(minItems: 1)"
    assert fields["only"]["enum"] == ["x"]


def test_nothing_stands_beside_a_reference() -> None:
    """A described reference is wrapped, so that the description is kept."""
    schema = strict_schema(Study)

    assert schema["properties"]["main"] == {"anyOf": [{"$ref": "#/$defs/Site"}], "description": "the main site"}
    assert schema["properties"]["sites"]["items"] == {"$ref": "#/$defs/Site"}


class Tree(BaseModel):
    """A model that lies in itself."""

    children: list[Tree]


def test_a_recursive_model_can_be_said() -> None:
    """References keep recursion finite."""
    assert strict_schema(Tree)["$defs"]["Tree"]["properties"]["children"]["items"] == {"$ref": "#/$defs/Tree"}


class Mapped(BaseModel):
    """Open keys."""

    by_name: dict[str, int]


class Pair(BaseModel):
    """A tuple."""

    pair: tuple[int, str]


class Anything(BaseModel):
    """No type."""

    value: Any


@pytest.mark.parametrize("model", [Mapped, Pair, Anything])
def test_what_strict_modes_cannot_say_is_told_apart(model: type[BaseModel]) -> None:
    """Mappings, tuples and untyped values have no strict schema."""
    with pytest.raises(NotStrictError):
        strict_schema(model)


def test_a_schema_s_name_is_one_that_providers_allow() -> None:
    """Generic models have brackets in their names."""
    from typing import Generic, TypeVar

    T = TypeVar("T")

    class Box(BaseModel, Generic[T]):
        """A box."""

        inside: T

    assert schema_name(Box[int]) == "Box_int_"
