"""Tokens as providers count them. What a provider does not say is not made up: the call is then marked `unpriced`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headrace.model.usage import Usage

#: A call that was paid for, of which nobody knows how much: its cost is unknown, not 0.
UNKNOWN_USAGE = Usage(calls=1, unpriced=1)
#: More tokens than any model takes: a mistake of the server.
_MOST_TOKENS = 10**9


def read_usage(data: Any) -> Usage:
    """The usage in this `usage` object of a chat completion or of embeddings.

    Tokens of reasoning are tokens of the answer: providers have them in `completion_tokens` already.

    >>> read_usage({"prompt_tokens": 9, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 4}})
    Usage(input_tokens=9, output_tokens=2, calls=1, reused=0, cached_tokens=4, cost_nano=0, unpriced=0)
    >>> read_usage(None).cost is None
    True
    """
    counts = data if isinstance(data, Mapping) else {}
    asked, answered = _tokens(counts, "prompt_tokens"), _tokens(counts, "completion_tokens")
    if asked is None:
        return UNKNOWN_USAGE if not answered else Usage(output_tokens=answered, calls=1, unpriced=1)
    if answered is None:
        # Embeddings have no answer in tokens; of a chat that says only one of both the cost is unknown.
        whole = _tokens(counts, "total_tokens")
        return Usage(input_tokens=asked, calls=1, unpriced=0 if whole == asked else 1)
    details = counts.get("prompt_tokens_details")
    cached = _tokens(details, "cached_tokens") if isinstance(details, Mapping) else None
    if cached is None:  # DeepSeek
        cached = _tokens(counts, "prompt_cache_hit_tokens")
    return Usage(input_tokens=asked, output_tokens=answered, calls=1, cached_tokens=min(cached or 0, asked))


def _tokens(counts: Mapping[str, Any], name: str) -> int | None:
    value = counts.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= _MOST_TOKENS else None
