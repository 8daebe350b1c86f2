"""The strategy for providers that hold the answer to a JSON schema."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from headrace.llm.exchange import Exchange
from headrace.llm.json_mode import extract_json
from headrace.llm.repair import ask_until_valid
from headrace.llm.results import Extraction
from headrace.llm.schema import NotStrictError, schema_name, strict_schema
from headrace.llm.validation import read_json
from headrace.model.llm import CompletionRequest

M = TypeVar("M", bound=BaseModel)


async def extract_strict(exchange: Exchange, model: type[M], request: CompletionRequest) -> Extraction[M]:
    """One ask with the schema beside it. A model no strict schema can say is asked for in JSON mode."""
    try:
        schema = strict_schema(model)
    except NotStrictError:
        return await extract_json(exchange, model, request)
    asked = replace(request, schema=schema, schema_name=schema_name(model))
    value, provenance = await ask_until_valid(exchange, asked, partial(read_json, model))
    return Extraction(value, exchange.usage, provenance)
