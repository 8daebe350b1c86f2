"""Embeddings on the wire: one vector for each text, in the order of the texts."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from headrace.model.llm import Embeddings
from headrace.providers.chat import Reader
from headrace.providers.texts import clean_name
from headrace.providers.usage import read_usage


def embeddings_body(texts: tuple[str, ...], *, model: str) -> dict[str, Any]:
    """The JSON body of this request. Numbers in plain, for not every server knows base64."""
    return {"model": model, "input": list(texts), "encoding_format": "float"}


def read_embeddings(body: Mapping[str, Any], *, count: int, reader: Reader) -> Embeddings:
    """The `count` vectors in this body. Raises BadOutputError where they are not all there, or no numbers."""
    usage = read_usage(body.get("usage"))
    entries = body.get("data")
    if not isinstance(entries, list) or len(entries) != count:
        said = "an error" if body.get("error") else f"no list of {count} vectors"
        raise reader.bad(f"the body is {said}", usage)
    vectors: dict[int, tuple[float, ...]] = {}
    for place, entry in enumerate(entries):
        vector = _vector(entry)
        if vector is None:
            raise reader.bad(f"entry {place} is no vector of numbers", usage)
        index = entry.get("index", place)
        vectors[index if isinstance(index, int) else place] = vector
    if sorted(vectors) != list(range(count)):
        raise reader.bad("the vectors are not numbered from 0 on", usage)
    if len({len(vector) for vector in vectors.values()}) > 1:
        raise reader.bad("the vectors have not all the same length", usage)
    return Embeddings(
        vectors=tuple(vectors[index] for index in range(count)),
        usage=usage,
        model=clean_name(body.get("model")),
        request_id=reader.request_id,
        hint=reader.hint,
    )


def _vector(entry: Any) -> tuple[float, ...] | None:
    numbers = entry.get("embedding") if isinstance(entry, Mapping) else None
    if not isinstance(numbers, list) or not numbers:
        return None
    if not all(isinstance(number, int | float) and math.isfinite(number) for number in numbers):
        return None
    return tuple(float(number) for number in numbers)
