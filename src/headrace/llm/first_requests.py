"""The first request of an extraction, by what the provider can be asked for."""

from __future__ import annotations

from dataclasses import replace

from pydantic import BaseModel

from headrace.llm.prompts import with_schema
from headrace.llm.schema import NotStrictError, plain_schema, schema_name, strict_schema
from headrace.model.llm import AnswerStyle, CompletionRequest


def first_request(model: type[BaseModel], request: CompletionRequest, style: AnswerStyle) -> CompletionRequest:
    """The request for one object: held to a schema, or told one; a plain model is asked about the text alone."""
    match style:
        case AnswerStyle.STRICT_SCHEMA:
            return strict_request(model, request)
        case AnswerStyle.JSON:
            return json_request(model, request)
        case AnswerStyle.PLAIN:
            return request


def strict_request(model: type[BaseModel], request: CompletionRequest) -> CompletionRequest:
    """The request with the schema beside it; in JSON mode where no strict schema can say the model."""
    try:
        return replace(request, schema=strict_schema(model), schema_name=schema_name(model))
    except NotStrictError:
        return json_request(model, request)


def json_request(model: type[BaseModel], request: CompletionRequest) -> CompletionRequest:
    """The request in JSON mode, with the schema in the system message: what equal asks share stands first."""
    messages = with_schema(request.messages, plain_schema(model))
    return replace(request, messages=messages, json_mode=True, schema=None, schema_name=schema_name(model))
