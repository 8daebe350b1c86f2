"""The strategy for providers that hold the answer to a JSON schema."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from headrace.llm.items import OnFail
from headrace.llm.json_mode import extract_json
from headrace.llm.ladder.asking import Asking
from headrace.llm.ladder.objects import extract_object
from headrace.llm.results import Extraction
from headrace.llm.schema import NotStrictError, schema_name, strict_schema
from headrace.model.llm import CompletionRequest

M = TypeVar("M", bound=BaseModel)


async def extract_strict(
    exchange: Asking, model: type[M], request: CompletionRequest, *, on_fail: OnFail | None = None
) -> Extraction[M]:
    """One ask with the schema beside it. A model no strict schema can say is asked for in JSON mode."""
    try:
        schema = strict_schema(model)
    except NotStrictError:
        return await extract_json(exchange, model, request, on_fail=on_fail)
    asked = replace(request, schema=schema, schema_name=schema_name(model))
    return await extract_object(exchange, model, asked, on_fail=on_fail)
