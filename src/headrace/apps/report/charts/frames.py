"""What all charts have in common."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Spec = dict[str, Any]
Rows = Sequence[Mapping[str, Any]]

SCHEMA = "https://vega.github.io/schema/vega-lite/v5.json"
#: An axis of names needs no line.
QUIET: Spec = {"domain": False, "ticks": False}
#: Bars of a chart; more are told in tables alone.
MOST_BARS = 12
#: In pixels; axes give names as much room.
_WIDEST_NAME = 190.0
_WIDE_SIGN, _SIGN = 12.0, 6.7
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
#: Words and lines take the colour of the text around them, so charts are readable in light and dark.
_INK = "currentColor"
_CONFIG: Spec = {
    "background": None,
    "font": "sans-serif",
    "aria": False,
    "view": {"stroke": None},
    "axis": {
        "labelColor": _INK, "titleColor": _INK, "gridColor": _INK, "gridOpacity": 0.15, "domainColor": _INK,
        "domainOpacity": 0.4, "tickColor": _INK, "tickOpacity": 0.4, "labelFontSize": 12, "titleFontSize": 12,
        "titleFontWeight": "normal", "labelLimit": 260, "labelPadding": 5,
    },
    "legend": {
        "labelColor": _INK, "titleColor": _INK, "labelFontSize": 12, "orient": "bottom", "columns": 3, "title": None,
        "symbolType": "square",
    },
    "text": {"fill": _INK, "fontSize": 12},
}  # fmt: skip


def frame(name: str, told: tuple[str, str], columns: Mapping[str, str], rows: Rows, **spec: Any) -> Spec:
    """Return a chart: `told` is its title and what it says in a sentence; `columns` names the fields of its rows."""
    title, description = told
    return {
        "$schema": SCHEMA,
        "description": description,
        "usermeta": {"name": name, "title": title, "columns": dict(columns)},
        "data": {"values": [dict(row) for row in rows]},
        "config": _CONFIG,
        **spec,
    }


def by_name(field: str, **more: Any) -> Spec:
    """Return a channel of names, in the order of the rows."""
    return {"field": field, "type": "nominal", "sort": None, "title": None, **more}


def beside(field: str, names: Iterable[str], **more: Any) -> Spec:
    """Return a channel of names left of the rows, with room for the widest.

    The room is reckoned here: where the machine that draws has no font for a script, its widths are wrong.
    """
    room = max((width_of(name) for name in names), default=0)
    return by_name(field, axis=QUIET | {"minExtent": round(room) + 8}, **more)


def by_count(field: str, title: str, **axis: Any) -> Spec:
    """Return a channel of numbers."""
    return {"field": field, "type": "quantitative", "title": title, "axis": {"tickMinStep": 1, "tickCount": 5} | axis}


def safe_name(text: str) -> str:
    """Return a name that fits beside an axis, without signs that cannot be drawn."""
    text = " ".join(_CONTROLS.sub(" ", text[:200]).split())
    if width_of(text) <= _WIDEST_NAME:
        return text
    while width_of(text) > _WIDEST_NAME - _WIDE_SIGN:
        text = text[:-1]
    return f"{text.rstrip()}…"


def width_of(text: str) -> float:
    """Return about how many pixels wide a text is in the letters of charts."""
    return sum(_WIDE_SIGN if unicodedata.east_asian_width(sign) in "WF" else _SIGN for sign in text)


def extra_width(texts: Iterable[str]) -> int:
    """Return how much wider a word may be than the drawing reckons: signs of twice the width are not known to it."""
    return max((7 * sum(unicodedata.east_asian_width(sign) in "WF" for sign in text) for text in texts), default=0)


def distinct(names: Sequence[str]) -> list[str]:
    """Return the names with numbers where they repeat: two bars never share a place.

    >>> distinct(["a", "a"])
    ['a', 'a (2)']
    """
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return result
