"""The time between two dates, in several units at once."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headrace.model.expressions.functions.spans import difference, moved
from headrace.model.expressions.moments import Moment

#: From the largest to the smallest, as they are counted.
UNITS = ("years", "quarters", "months", "weeks", "days", "hours", "minutes", "seconds", "milliseconds")
_MARKS = {"years": "Y", "months": "M", "weeks": "W", "days": "D", "hours": "H", "minutes": "M", "seconds": "S"}
_CLOCK = ("hours", "minutes", "seconds")


def time_between(start: Moment, end: Moment, asked: Collection[str]) -> dict[str, float]:
    """Return whole units from the largest on, and what is left as a fraction of the smallest."""
    found: dict[str, float] = {}
    units = [unit for unit in UNITS if unit in asked]
    for unit in units:
        count = difference(end, start, unit)
        found[unit] = _plain(count) if unit == units[-1] else int(count)
        start = moved(start, {unit: int(count)}, 1)
    return found


def duration_text(found: Mapping[str, float]) -> str:
    """Return amounts as an ISO 8601 duration; quarters are months in it, milliseconds seconds.

    >>> duration_text({"quarters": 1, "days": 2, "milliseconds": 1500})
    'P3M2DT1.5S'
    """
    amounts = dict(found)
    if "quarters" in amounts:
        amounts["months"] = amounts.get("months", 0) + 3 * amounts.pop("quarters")
    if "milliseconds" in amounts:
        amounts["seconds"] = amounts.get("seconds", 0) + amounts.pop("milliseconds") / 1000
    texts = {unit: f"{_plain(amounts[unit])}{mark}" for unit, mark in _MARKS.items() if amounts.get(unit)}
    days = "".join(text for unit, text in texts.items() if unit not in _CLOCK)
    clock = "".join(text for unit, text in texts.items() if unit in _CLOCK)
    return f"P{days}{'T' if clock else ''}{clock}" if texts else "PT0S"


def _plain(count: float) -> float:
    """Return a number without what binary fractions leave behind."""
    rounded = round(count, 9)
    return int(rounded) if rounded == int(rounded) else rounded
