"""Dates as text by a pattern: the letters are those of Luxon and of Unicode, names are English."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime

from headrace.model.expressions.budget import Run
from headrace.model.expressions.errors import Fault

_MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_TOKEN = re.compile(r"'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+|'")
_LONGEST = 200


def _offset(at: datetime, between: str) -> str:
    minutes = int((at.utcoffset() or at - at).total_seconds() // 60)
    return f"{'-' if minutes < 0 else '+'}{abs(minutes) // 60:02d}{between}{abs(minutes) % 60:02d}"


_LETTERS: dict[str, Callable[[datetime], str]] = {
    "y": lambda at: str(at.year),
    "yy": lambda at: f"{at.year % 100:02d}",
    "yyyy": lambda at: f"{at.year:04d}",
    "M": lambda at: str(at.month),
    "MM": lambda at: f"{at.month:02d}",
    "MMM": lambda at: _MONTHS[at.month - 1][:3],
    "MMMM": lambda at: _MONTHS[at.month - 1],
    "d": lambda at: str(at.day),
    "dd": lambda at: f"{at.day:02d}",
    "o": lambda at: str(at.timetuple().tm_yday),
    "ooo": lambda at: f"{at.timetuple().tm_yday:03d}",
    "E": lambda at: str(at.isoweekday()),
    "EEE": lambda at: _DAYS[at.weekday()][:3],
    "EEEE": lambda at: _DAYS[at.weekday()],
    "H": lambda at: str(at.hour),
    "HH": lambda at: f"{at.hour:02d}",
    "h": lambda at: str((at.hour + 11) % 12 + 1),
    "hh": lambda at: f"{(at.hour + 11) % 12 + 1:02d}",
    "m": lambda at: str(at.minute),
    "mm": lambda at: f"{at.minute:02d}",
    "s": lambda at: str(at.second),
    "ss": lambda at: f"{at.second:02d}",
    "S": lambda at: str(at.microsecond // 1000),
    "SSS": lambda at: f"{at.microsecond // 1000:03d}",
    "a": lambda at: "AM" if at.hour < 12 else "PM",
    "Z": lambda at: _offset(at, ":").removesuffix(":00").replace("+0", "+").replace("-0", "-"),
    "ZZ": lambda at: _offset(at, ":"),
    "ZZZ": lambda at: _offset(at, ""),
    "z": lambda at: str(at.tzinfo),
    "W": lambda at: str(at.isocalendar().week),
    "WW": lambda at: f"{at.isocalendar().week:02d}",
    "kkkk": lambda at: f"{at.isocalendar().year:04d}",
    "q": lambda at: str((at.month + 2) // 3),
    "X": lambda at: str(int(at.timestamp() // 1)),
    "x": lambda at: str(round(at.timestamp() * 1000)),
}
#: Letters that mean what others mean: standing alone, months and days are named as they are elsewhere.
_SAME = {"L": "M", "c": "E"}


def formatted(run: Run, at: datetime, pattern: str) -> str:
    """Return a date by a pattern. Raises Fault for letters that mean nothing."""
    if len(pattern) > _LONGEST:
        raise Fault(f"takes a pattern of at most {_LONGEST} characters")
    run.charge(4_000)
    return "".join(_piece(at, found) for found in run.each(list(_TOKEN.finditer(pattern))))


def _piece(at: datetime, found: re.Match[str]) -> str:
    whole = found.group()
    if found[1] is not None:
        return found[1]
    if found[2] is None:
        return whole
    letters = _SAME.get(found[2], found[2]) * len(whole)
    if letters not in _LETTERS:
        raise Fault(f"does not know `{whole[:20]}` in a pattern: text goes in quotes, as in \"dd.MM.yyyy 'at' HH:mm\"")
    return _LETTERS[letters](at)
