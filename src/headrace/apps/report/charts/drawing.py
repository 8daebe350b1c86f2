"""From a specification to a picture within a page: SVG without script, link, style or font of elsewhere.

`vl_convert` holds a JavaScript engine of its own and draws without a browser: the first chart takes about 0.4 s and
60 MB, each other one 0.04 s. Where it is not installed, or cannot draw a chart, its rows stand there as a table.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping
from typing import Any

_ROOT = re.compile(r"<svg\b[^>]*>")
_SIZE = re.compile(r'\b(?:width|height|viewBox)="[\d. -]+"')
#: What no drawing of ours has: were it there, the chart would become a table.
_REFUSED = re.compile(r"<(?:script|style|a|image|foreignObject|use)\b|\s(?:on\w+|href|xlink:href|style)=|url\(", re.I)
#: Rows of the table in place of a chart.
_MOST_ROWS = 60


def draw(spec: Mapping[str, Any]) -> str:
    """Return a chart as SVG, or as a small table where it cannot be drawn."""
    try:
        return _described(_drawn(spec), spec)
    except Exception:  # whatever failed in the drawing, the figures can still be told
        return as_table(spec)


def _drawn(spec: Mapping[str, Any]) -> str:
    import vl_convert

    drawn: str = vl_convert.vegalite_to_svg(json.dumps(spec), allowed_base_urls=[])
    return drawn


def _described(svg: str, spec: Mapping[str, Any]) -> str:
    """Give the drawing a name and a description that screen readers tell."""
    root = _ROOT.search(svg)
    if root is None or _REFUSED.search(_without_text(svg)):
        raise ValueError("this is no drawing of ours")
    meta = spec["usermeta"]
    name, title = html.escape(meta["name"]), html.escape(meta["title"])
    size = " ".join(_SIZE.findall(root[0]))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="chart" {size} role="img" '
        f'aria-labelledby="chart-{name}-title chart-{name}-desc"><title id="chart-{name}-title">{title}</title>'
        f'<desc id="chart-{name}-desc">{html.escape(spec["description"])}</desc>{svg[root.end() :]}'
    )


def _without_text(svg: str) -> str:
    """Return the markup alone: words between the tags may say anything."""
    return re.sub(r">[^<]*<", "><", svg)


def as_table(spec: Mapping[str, Any]) -> str:
    """Return the rows of a chart as a table."""
    columns: Mapping[str, str] = spec["usermeta"]["columns"]
    rows = spec["data"]["values"]
    head = "".join(f'<th scope="col">{html.escape(title)}</th>' for title in columns.values())
    body = "".join(
        "<tr>" + "".join(f"<td>{html.escape(str(row.get(field, '')))}</td>" for field in columns) + "</tr>"
        for row in rows[:_MOST_ROWS]
    )
    more = f"<p>… {len(rows) - _MOST_ROWS}</p>" if len(rows) > _MOST_ROWS else ""
    return f'<div class="chart-table"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}</div>'
