"""A list of items from a model that answers only plainly: one item after the other, field by field."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import TypeVar

from pydantic import BaseModel

from headrace.llm.items import ItemResult, OnFail, degrade
from headrace.llm.ladder.asking import Asking
from headrace.llm.plain import extract_plain
from headrace.model.errors import InvalidInputError
from headrace.model.llm import CompletionRequest, Message
from headrace.model.provider_errors import BadOutputError

M = TypeVar("M", bound=BaseModel)


async def each_plainly(
    exchange: Asking, item: type[M], request: CompletionRequest, *, expected: int | None, on_fail: OnFail
) -> AsyncGenerator[ItemResult[M]]:
    """The items as they are answered. Raises InvalidInputError without `expected`; RefusedError, ProviderErrors."""
    if expected is None:
        raise InvalidInputError(
            "expected", "must be given, for the model answers plainly and is asked item by item", None
        )
    for index in range(expected):
        try:
            extraction = await extract_plain(exchange, item, _of_one(request, index, expected))
        except BadOutputError as error:
            value, provenance = degrade(item, on_fail, "", error.errors)
            yield ItemResult(index, value, provenance, error.errors)
        else:
            yield ItemResult(index, extraction.value, extraction.provenance)


def _of_one(request: CompletionRequest, index: int, expected: int) -> CompletionRequest:
    *earlier, last = request.messages
    words = f"{last.content}\n\nThe questions are about item {index + 1} of {expected} alone."
    return replace(request, messages=(*earlier, Message(last.role, words)))
