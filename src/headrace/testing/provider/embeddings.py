"""Embeddings as the wire carries them: unit vectors of hashed pieces of the text, so that similar texts lie near."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headrace.testing.provider.chat import BadChatRequestError, count_tokens, read_json

_DEFAULT_DIMENSIONS = 256
_MOST_DIMENSIONS = 4_096
_WORD = re.compile(r"\w+")
_PIECE = 3


@dataclass(frozen=True, kw_only=True)
class EmbeddingsRequest:
    """A request for embeddings."""

    #: 16 hex digits over everything: equal requests have equal keys.
    key: str
    model: str
    inputs: tuple[str, ...]
    dimensions: int
    as_base64: bool

    @property
    def max_tokens(self) -> int:
        """None are written."""
        return 0

    @cached_property
    def text(self) -> str:
        """All texts, for looking words up in."""
        return "\n\n".join(self.inputs)

    @cached_property
    def input_tokens(self) -> int:
        """Rough count of the texts' tokens."""
        return sum(count_tokens(text) for text in self.inputs)


def read_embeddings(raw: bytes) -> EmbeddingsRequest:
    """The request in this body. Raises BadChatRequestError that says what is wrong."""
    body = read_json(raw)
    given = body.get("input") if isinstance(body, dict) else None
    inputs = [given] if isinstance(given, str) else given
    if not isinstance(inputs, list) or not inputs or not all(isinstance(text, str) and text for text in inputs):
        raise BadChatRequestError("'input' must be a text or a list of texts, none of them empty")
    dimensions = body.get("dimensions") or _DEFAULT_DIMENSIONS
    if type(dimensions) is not int or not 1 <= dimensions <= _MOST_DIMENSIONS:
        raise BadChatRequestError(f"'dimensions' must be a whole number from 1 to {_MOST_DIMENSIONS}")
    return EmbeddingsRequest(
        key=hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:16],
        model=str(body.get("model", "")),
        inputs=tuple(inputs),
        dimensions=dimensions,
        as_base64=body.get("encoding_format") == "base64",
    )


def embed(text: str, dimensions: int = _DEFAULT_DIMENSIONS) -> list[float]:
    """A unit vector for this text: the same in every run, and near to those of texts with the same pieces.

    >>> near = sum(a * b for a, b in zip(embed("red apple"), embed("red apples")))
    >>> far = sum(a * b for a, b in zip(embed("red apple"), embed("tax return")))
    >>> near > 0.7 > 0.3 > far
    True
    """
    vector = [0.0] * dimensions
    for piece, count in _pieces(text).items():
        hashed = zlib.crc32(piece.encode("utf-8", "replace"))
        # The sign keeps pieces that share a place from always adding up.
        vector[(hashed >> 1) % dimensions] += math.sqrt(count) * (1 if hashed & 1 else -1)
    length = math.sqrt(sum(part * part for part in vector))
    return [part / length for part in vector] if length else [1.0] + [0.0] * (dimensions - 1)


def _pieces(text: str) -> Counter[str]:
    """The words, and what three letters at a time they are made of."""
    counts: Counter[str] = Counter()
    for word in _WORD.findall(text.casefold()):
        padded = f" {word} "
        counts.update([word, *(padded[start : start + _PIECE] for start in range(len(padded) - _PIECE + 1))])
    return counts


def embeddings_body(request: EmbeddingsRequest, model: str) -> dict[str, Any]:
    """The body of the answer."""
    vectors = [embed(text, request.dimensions) for text in request.inputs]
    data = [_entry(index, vector, as_base64=request.as_base64) for index, vector in enumerate(vectors)]
    usage = {"prompt_tokens": request.input_tokens, "total_tokens": request.input_tokens}
    return {"object": "list", "data": data, "model": request.model or model, "usage": usage}


def _entry(index: int, vector: Sequence[float], *, as_base64: bool) -> Mapping[str, Any]:
    packed = base64.b64encode(struct.pack(f"<{len(vector)}f", *vector)).decode() if as_base64 else vector
    return {"object": "embedding", "index": index, "embedding": packed}
