"""Durations, in seconds."""

from __future__ import annotations

import math
import re
import unicodedata
from datetime import timedelta

from headrace.apps.report.ingest.cells import MAX_WORD, Cell
from headrace.apps.report.ingest.words import unit_seconds

_CLOCK = re.compile(r"(?:(\d+):)?(\d{1,3}):(\d{1,2}(?:\.\d+)?)")
_PIECE = re.compile(r"\s*(\d+(?:[.,]\d+)?)\s*([a-z]+|[毫秒分钟时小天]+)\s*,?", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")


def seconds_of(cell: Cell, unit: float = 1) -> float | None:
    """Return the seconds of a duration; None where it is none. A plain number counts in `unit`.

    >>> seconds_of("1m30s"), seconds_of("00:01:30"), seconds_of("1.5 min"), seconds_of("1分30秒"), seconds_of(1.5, 60)
    (90.0, 90.0, 90.0, 90.0, 90.0)
    >>> seconds_of("01:30"), seconds_of("-1"), seconds_of("long")
    (90.0, None, None)
    """
    if isinstance(cell, timedelta):
        found: float | None = cell.total_seconds()
    elif isinstance(cell, int | float) and not isinstance(cell, bool):
        found = cell * unit
    else:
        found = _of_text(cell, unit) if isinstance(cell, str) and len(cell) <= MAX_WORD else None
    if found is None or not math.isfinite(found) or found < 0:
        return None
    return round(found, 3)


def _of_text(text: str, unit: float) -> float | None:
    plain = unicodedata.normalize("NFKC", text).strip()
    if _NUMBER.fullmatch(plain):
        return float(plain.replace(",", "")) * unit
    clock = _CLOCK.fullmatch(plain)
    if clock:
        return int(clock[1] or 0) * 3600 + int(clock[2]) * 60 + float(clock[3])
    return _of_pieces(plain)


def _of_pieces(plain: str) -> float | None:
    """Return the sum of "1h 2m 3s"; every piece needs a unit that is known."""
    whole, at = 0.0, 0
    for match in _PIECE.finditer(plain):
        seconds = unit_seconds(match[2])
        if seconds is None or match.start() != at:
            return None
        whole += float(match[1].replace(",", ".")) * seconds
        at = match.end()
    return whole if 0 < at == len(plain) else None
