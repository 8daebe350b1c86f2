"""How figures, instants and texts of users stand in pages."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from markupsafe import Markup, escape

from headrace.model.money import UNKNOWN, show_money

#: Characters of a text of a user that a page shows; the rest is a request away.
MOST_SHOWN, MOST_IN_ROW = 16_384, 200
_UNITS = ((86_400, "d"), (3_600, "h"), (60, "min"))


def number(value: float | None, digits: int = 0) -> str:
    """Return a number with separators; what is not known is a dash.

    >>> number(1234567), number(0.126, 2), number(None)
    ('1,234,567', '0.13', '–')
    """
    if value is None:
        return "–"
    # Whole numbers may be larger than any that a float holds.
    return f"{value:,}" if isinstance(value, int) and not digits else f"{value:,.{digits}f}"


def rate(value: float | None) -> str:
    """Return a rate with as many digits as mean something.

    >>> rate(1234.5), rate(12.34), rate(0.034)
    ('1,234', '12.3', '0.03')
    """
    if value is None:
        return "–"
    return number(value, 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2)


def span(value: timedelta | float | None) -> str:
    """Return a duration in its two largest units; a number is seconds.

    >>> span(0.0042), span(1.5), span(75), span(timedelta(days=2, hours=3, minutes=4))
    ('4 ms', '1.5 s', '1 min 15 s', '2 d 3 h')
    """
    if value is None:
        return "–"
    seconds = value.total_seconds() if isinstance(value, timedelta) else float(value)
    if not math.isfinite(seconds):
        return "–"
    if seconds < 0:
        return f"−{span(-seconds)}"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    parts, left = [], round(seconds)
    for size, unit in (*_UNITS, (1, "s")):
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2])


def dollars(translate: Callable[..., str]) -> Callable[[int | None], str]:
    """Return the filter that shows nanodollars; what is not known is called so."""
    return lambda nano: translate(UNKNOWN) if nano is None else show_money(nano)


def share(value: float | None) -> str:
    """Return a part of one as percent.

    >>> share(0.123)
    '12 %'
    """
    return "–" if value is None else f"{value * 100:.0f} %"


def size(count: float | None) -> str:
    """Return a count of bytes.

    >>> size(512), size(1_500_000)
    ('512 B', '1.5 MB')
    """
    if count is None:
        return "–"
    for unit in ("B", "kB", "MB", "GB"):
        if abs(count) < 1000:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def clock(translate: Callable[..., str]) -> Callable[[datetime | None, datetime], Markup]:
    """Return the filter that shows an instant as its distance from now, with the instant itself beside it."""

    def ago(instant: datetime | None, now: datetime) -> Markup:
        if instant is None:
            return Markup("–")
        distance = (now - instant).total_seconds()
        text = (
            translate("{span} ago", span=span(distance))
            if distance >= 0
            else translate("in {span}", span=span(-distance))
        )
        exact = instant.isoformat(timespec="milliseconds")
        return Markup('<time datetime="{0}" title="{0}">{1}</time>').format(exact, text)

    return ago


def pretty(value: Any) -> str:
    """Return a value as JSON that people read.

    >>> print(pretty({"a": [1, "ü"]}))
    {
      "a": [
        1,
        "ü"
      ]
    }
    """
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def line(value: Any, most: int = MOST_IN_ROW) -> str:
    """Return a value as one short line, for a cell of a table.

    >>> line({"text": "x" * 20}, 16)
    '{"text":"xxxxxx…'
    """
    text = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    )
    text = " ".join(text[: most * 4].split())
    return text if len(text) <= most else f"{text[: most - 1]}…"


def payload(translate: Callable[..., str]) -> Callable[..., Markup]:
    """Return the filter that shows what a user wrote as text: never as markup, in its own direction, bounded."""

    def show(value: Any, most: int = MOST_SHOWN) -> Markup:
        text = value if isinstance(value, str) else pretty(value)
        shown = Markup('<pre class="payload" dir="auto" tabindex="0">{}</pre>').format(text[:most])
        if len(text) <= most:
            return shown
        told = translate("The first {shown} of {all} characters.", shown=number(most), all=number(len(text)))
        return shown + Markup('<p class="cut">{}</p>').format(told)

    return show


def cell(value: Any, most: int = MOST_IN_ROW) -> Markup:
    """Return what a user wrote as one line of a table, kept apart from what stands around it."""
    return Markup('<bdi class="text">{}</bdi>').format(escape(line(value, most)))
