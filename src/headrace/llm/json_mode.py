"""The strategy for providers that answer JSON, but hold it to no schema: the schema is told in words."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import partial
from typing import TypeVar

from pydantic import BaseModel

from headrace.llm.exchange import Exchange
from headrace.llm.repair import ask_until_valid
from headrace.llm.results import Extraction
from headrace.llm.schema import plain_schema, schema_name
from headrace.llm.validation import read_json
from headrace.model.llm import CompletionRequest, Message

M = TypeVar("M", bound=BaseModel)

_INSTRUCTION = "Answer with one JSON object that follows this JSON schema, and with nothing else:"


async def extract_json(exchange: Exchange, model: type[M], request: CompletionRequest) -> Extraction[M]:
    """One ask in JSON mode, with the schema in the system message: what equal asks share stands first."""
    asked = replace(
        request, messages=_with_schema(request, model), json_mode=True, schema=None, schema_name=schema_name(model)
    )
    value, provenance = await ask_until_valid(exchange, asked, partial(read_json, model))
    return Extraction(value, exchange.usage, provenance)


def _with_schema(request: CompletionRequest, model: type[BaseModel]) -> tuple[Message, ...]:
    schema = json.dumps(plain_schema(model), separators=(",", ":"), ensure_ascii=False)
    instruction = f"{_INSTRUCTION}\n{schema}"
    first, *rest = request.messages
    if first.role == "system":
        return (Message("system", f"{first.content}\n\n{instruction}"), *rest)
    return (Message("system", instruction), first, *rest)
