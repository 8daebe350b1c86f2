"""What of an answer no store can keep: NUL characters, halves of surrogate pairs, data that is nested too deeply."""

from __future__ import annotations

import re
from typing import Any

from headrace.nodes.json_texts import MAX_LEVELS

_HALVES = re.compile(r"[\ud800-\udfff]")


def kept_text(text: str) -> str:
    r"""Return a text without NUL characters, and with the usual sign in place of halves of surrogate pairs.

    >>> kept_text("a\0b\ud800")
    'ab�'
    """
    return _HALVES.sub("\ufffd", text.replace("\0", ""))


def kept(value: Any, depth: int = 1) -> Any:
    """Return JSON data with all texts in it as `kept_text` has them. Raises ValueError if it is nested too deeply.

    >>> kept({"a": ["b"]})
    {'a': ['b']}
    """
    if isinstance(value, str):
        return kept_text(value)
    if not isinstance(value, dict | list):
        return value
    if depth > MAX_LEVELS:
        raise ValueError(f"it is nested more than {MAX_LEVELS} levels deep")
    if isinstance(value, list):
        return [kept(one, depth + 1) for one in value]
    return {kept_text(name): kept(one, depth + 1) for name, one in value.items()}
