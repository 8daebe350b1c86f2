"""llmExtract: data of a given shape, taken from a text by a model, for each item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.errors import HeadraceError
from headrace.nodes.asking import check_manner, check_text, manner, with_json
from headrace.nodes.base import Fault, Item, Named, NodeError, OneCall, Shape, ours
from headrace.nodes.checking import is_expression, written
from headrace.nodes.parameters import Parameters
from headrace.nodes.schemas import Schema, checked, of_attributes

#: What a model is told that is told nothing else.
INSTRUCTIONS = "Fill in what is asked for from the user's text alone. What the text does not say stays empty."


class LlmExtractType(Named):
    """Asks a model for valid data by a schema, and writes them to a field of the item.

    `text` is what it reads, `instructions` what it is told of it; `schema` is a JSON Schema (see `schemas.py`), or
    `attributes` a list of {name, type, description, required}. `model`, `maxTokens`, `temperature` are as of llmChat.
    The data go to `outputField` ("output").
    """

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a missing text, and a schema that we cannot hold a model to."""
        path = "prompt" if "prompt" in parameters else "text"
        found = check_text(parameters, path, "the text that data are taken from") + check_manner(parameters)
        if ("schema" in parameters) == ("attributes" in parameters):
            rule = "must be a JSON Schema, or attributes a list of {name, type, description, required}: one of the two"
            return [*found, Fault("schema", rule)]
        return found + check_schema(parameters, "schema" if "schema" in parameters else "attributes", _schema)

    async def run_one(self, call: OneCall) -> list[Item]:
        """Return the item with the data. Raises NodeError, and what the model raises."""
        at = call.parameters
        field = "prompt" if at.has("prompt") else "text"
        value = await extracted(call, _schema(at), text=at.text(field), system=at.text("instructions"))
        json = {**call.item["json"], at.text("outputField") or "output": value}
        return [with_json(call.item, json)]


async def extracted(call: OneCall, schema: Schema, *, text: str, system: str) -> Any:
    """Return what a model takes from a text. Raises NodeError for an empty one, and what the model raises."""
    if not text.strip():
        raise NodeError("parameters.text is empty for this item: there is nothing to read")
    return await call.services.model.extract(schema, text, system=system or INSTRUCTIONS, **manner(call.parameters))


def check_schema(parameters: Mapping[str, Any], path: str, make: Any) -> list[Fault]:
    """Return what is wrong with a schema that `make` reads from parameters, unless parts of it are computed."""
    if holds_expression(written(parameters, path)):
        return []
    try:
        make(Parameters(parameters))
    except HeadraceError as error:
        return [Fault(path, str(error))]
    return []


def holds_expression(value: Any) -> bool:
    """Whether something within a value is computed when the node runs."""
    todo = [value]
    for one in todo:  # which grows
        if is_expression(one):
            return True
        if isinstance(one, Mapping | list):
            todo += one.values() if isinstance(one, Mapping) else one
    return False


def _schema(at: Parameters) -> Schema:
    given = at.get("schema")
    return checked(given if at.has("schema") else of_attributes(at.listed("attributes")))


TYPE = LlmExtractType(
    "llmExtract", ours("llmExtract"), (1, 1), "takes data of a given shape from a text, by a model", Shape.EACH
)
