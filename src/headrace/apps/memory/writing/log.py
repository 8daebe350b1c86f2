"""The log of what was told: lines as memory keeps them, made of items that the model gave."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

from headrace.apps.memory.writing.shapes import LogLine

_DAY = re.compile(r"(\d{4})(?:-(\d{2})(?:-(\d{2}))?)?")
_BESIDE = re.compile(r"(?: \[(?:mention|event) [^\]]*\])? // (?:info|event|schedule)$")


def log_of(items: Iterable[LogLine]) -> str:
    """Return a log, a line for each item, each once.

    >>> log_of([LogLine(text="User  lives in Lyon", kind="info", mention="2026-05-02T10:00:00Z", event="soon")])
    '- User lives in Lyon [mention 2026-05-02] // info'
    """
    return "\n".join(dict.fromkeys(line_of(item) for item in items))


def line_of(item: LogLine) -> str:
    """Return the line of one item."""
    told = [f"{word} {day}" for word, said in (("mention", item.mention), ("event", item.event)) if (day := _day(said))]
    dates = f" [{', '.join(told)}]" if told else ""
    # What the line ends with is ours alone to say.
    text = " ".join(item.text.split()).lstrip("-•* ").replace("//", "/ /")
    return f"- {text}{dates} // {item.kind}"


def told_in(log: str) -> str:
    """Return the words of a log, without what code wrote beside them.

    >>> told_in("- 用户住在里昂 [mention 2026-05-02] // info")
    '- 用户住在里昂'
    """
    return "\n".join(_BESIDE.sub("", line) for line in log.splitlines())


def _day(said: str | None) -> str | None:
    """Return the day, month or year that a text begins with; None where it is none of the calendar."""
    found = _DAY.match((said or "").strip())
    if found is None:
        return None
    year, month, day = (int(part) if part else 1 for part in found.groups())
    try:
        date(year, month, day)
    except ValueError:
        return None
    return found.group()
