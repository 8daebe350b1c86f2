"""Keys of answers: made of all that an answer depends on."""

from __future__ import annotations

from typing import Any

from headrace import Cache


def answer_key(*parts: Any, prompt: str, model: str, language: str) -> str:
    """Return the key of what a model answers. `prompt`: the prompt and its version; `parts`: what is asked about.

    >>> asked = answer_key("hello", prompt="summary/1", model="m", language="en")
    >>> asked == answer_key("hello", prompt="summary/2", model="m", language="en")
    False
    """
    return Cache.key({"prompt": prompt, "model": model, "language": language}, *parts)
