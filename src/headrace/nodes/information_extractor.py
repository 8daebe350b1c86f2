"""informationExtractor: llmExtract in the words of n8n's node of that name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.nodes.asking import check_text
from headrace.nodes.base import Fault, Item, Named, OneCall, Shape
from headrace.nodes.checking import one_of
from headrace.nodes.llm_extract import check_schema, extracted
from headrace.nodes.parameters import Parameters
from headrace.nodes.schemas import Schema, checked, of_attributes, of_example

_KINDS = ("fromAttributes", "fromJson", "manual")
#: Where each kind of schema stands.
_PLACES = {"fromAttributes": "attributes.attributes", "fromJson": "jsonSchemaExample", "manual": "inputSchema"}
#: From this version on everything that an example has is required.
_ALL_REQUIRED = 1.2


class InformationExtractorType(Named):
    """Takes data from a text by a model; which one is settings' business: the sub-node for it is not looked at.

    The output is {"output": {…}}. `options.batching` is of no concern: items are asked for within the model's limits.
    """

    def check(self, parameters: Mapping[str, Any], version: float) -> list[Fault]:
        """Return a missing text, and a schema that we cannot hold a model to."""
        found = check_text(parameters, "text", "the text that data are taken from")
        wrong = one_of(parameters, "schemaType", _KINDS, default=_KINDS[0], instead={})
        if wrong:
            return found + wrong
        path = _PLACES[parameters.get("schemaType", _KINDS[0])]
        return found + check_schema(parameters, path, lambda at: _schema(at, version))

    async def run_one(self, call: OneCall) -> list[Item]:
        """Return an item with the data. Raises NodeError, and what the model raises."""
        at = call.parameters
        system = at.text("options.systemPromptTemplate")
        value = await extracted(call, _schema(at, call.version), text=at.text("text"), system=system)
        return [{"json": {"output": value}}]


def _schema(at: Parameters, version: float) -> Schema:
    kind = at.one_of("schemaType", _KINDS, _KINDS[0])
    if kind == "fromAttributes":
        return checked(of_attributes(at.listed(_PLACES[kind])))
    given = at.get(_PLACES[kind], "")
    return checked(of_example(given, all_required=version >= _ALL_REQUIRED) if kind == "fromJson" else given)


TYPE = InformationExtractorType(
    "informationExtractor",
    ("@n8n/n8n-nodes-langchain.informationExtractor",),
    (1, 1.2),
    "takes data from a text by a model, as llmExtract does",
    Shape.EACH,
)
