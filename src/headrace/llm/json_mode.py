"""The strategy for providers that answer JSON, but hold it to no schema: the schema is told in words."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from headrace.llm.items import OnFail
from headrace.llm.ladder.asking import Asking
from headrace.llm.ladder.objects import extract_object
from headrace.llm.prompts import with_schema
from headrace.llm.results import Extraction
from headrace.llm.schema import plain_schema, schema_name
from headrace.model.llm import CompletionRequest

M = TypeVar("M", bound=BaseModel)


async def extract_json(
    exchange: Asking, model: type[M], request: CompletionRequest, *, on_fail: OnFail | None = None
) -> Extraction[M]:
    """One ask in JSON mode, with the schema in the system message: what equal asks share stands first."""
    messages = with_schema(request.messages, plain_schema(model))
    asked = replace(request, messages=messages, json_mode=True, schema=None, schema_name=schema_name(model))
    return await extract_object(exchange, model, asked, on_fail=on_fail)
