"""The rule `compute`: answers that can be checked, since they are computed from the prompt."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from typing import Any

_INTEGER = re.compile(r"-?\d+")


def _integers(text: str) -> list[int]:
    return [int(number) for number in _INTEGER.findall(text)]


#: What may be computed from a text, by name.
COMPUTATIONS: Mapping[str, Callable[[str], Any]] = {
    "echo": lambda text: text,
    "upper": str.upper,
    "reverse": lambda text: text[::-1],
    "length": len,
    "count_words": lambda text: len(text.split()),
    "sum": lambda text: sum(_integers(text)),
    "largest": lambda text: max(_integers(text), default=None),
    "sha256": lambda text: hashlib.sha256(text.encode("utf-8", "replace")).hexdigest(),
}
