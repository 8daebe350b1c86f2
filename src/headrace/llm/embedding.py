"""Vectors of texts, each list of them bought once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence

from headrace.llm.ask import EMBEDDING
from headrace.llm.exchange import Exchange
from headrace.model.errors import InvalidInputError
from headrace.model.llm import CompletionRequest, Message

#: Texts of one call: every provider takes as many, and a list that changes a little is mostly bought already.
CHUNK = 64


async def embed(new_exchange: Callable[[], Exchange], model: str, texts: Sequence[str]) -> list[list[float]]:
    """A vector for each text, in order. Raises InvalidInputError, ProviderError."""
    if isinstance(texts, str) or not all(isinstance(text, str) and text for text in texts):
        raise InvalidInputError("texts", "must be a list of texts that are not empty", texts)
    chunks = [texts[start : start + CHUNK] for start in range(0, len(texts), CHUNK)]
    found = await asyncio.gather(*(_chunk(new_exchange(), model, chunk) for chunk in chunks))
    return [vector for vectors in found for vector in vectors]


async def _chunk(exchange: Exchange, model: str, texts: Sequence[str]) -> list[list[float]]:
    messages = tuple(Message("user", text) for text in texts)
    answer = await exchange.embed(CompletionRequest(model=model, messages=messages, schema_name=EMBEDDING))
    vectors: list[list[float]] = json.loads(answer.text)
    return vectors
