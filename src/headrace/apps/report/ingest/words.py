"""The words that people use for fields and values: read from words.json, which is where more of them belong."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

from headrace.apps.report.ingest.cells import key_of

_FILE = Path(__file__).with_name("words.json")


@lru_cache(maxsize=1)
def words() -> dict[str, Any]:
    """Return the file as it is."""
    found: dict[str, Any] = json.loads(_FILE.read_text(encoding="utf-8"))
    return found


@lru_cache(maxsize=8)
def meanings(group: str) -> dict[str, str]:
    """Return what each word of a group ("status", "priority", "severity") means, by its key.

    >>> meanings("status")["不通过"], meanings("priority")["高"]
    ('failed', 'P1')
    """
    return {key_of(word): meaning for meaning, listed in words()[group].items() for word in listed}


@lru_cache(maxsize=1)
def headers() -> dict[str, tuple[str, int]]:
    """Return field and rank of each header, by its key: of two columns for one field, the lower rank is the better."""
    found: dict[str, tuple[str, int]] = {}
    for field, listed in words()["fields"].items():
        for rank, word in enumerate(listed):
            found.setdefault(header_key(word), (field, rank))
    return found


def header_key(text: str) -> str:
    """Return the key of a header; the sign # is a number's.

    >>> header_key("TC#"), header_key("Pre-Condition *")
    ('tcno', 'precondition')
    """
    return key_of(text.replace("#", " no ").replace("＃", " no "))


@lru_cache(maxsize=8)
def keys(group: str) -> frozenset[str]:
    """Return the keys of a list of words: "yes", "no", "totals", "footers", "not_headers"."""
    return frozenset(key_of(word) for word in words()[group])


def unit_seconds(text: str) -> float | None:
    """Return the seconds of a unit of time.

    >>> unit_seconds("min"), unit_seconds("分钟"), unit_seconds("apples")
    (60, 60, None)
    """
    seconds: float | None = words()["units"].get(key_of(text))
    return seconds
